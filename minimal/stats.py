"""Did the mean move, or only the seeds? Groups of runs side by side, with every run shown."""

import math

from minimal.records import mean_spread, t_quantile, welch


def f_test(std1, n1, std2, n2):
    """Two-sided p for equal variances: the share of a Beta((n1 - 1) / 2, (n2 - 1) / 2) below S1 / (S1 + S2), sums of
    squares. In x = sin² a its density is sin(a)^(n1 - 2) cos(a)^(n2 - 2), smooth: Simpson's rule on a."""
    one, two, steps = (n1 - 1) * std1 ** 2, (n2 - 1) * std2 ** 2, 400
    density = lambda a: math.sin(a) ** (n1 - 2) * math.cos(a) ** (n2 - 2)

    def area(end):
        weight = [1, *(4 if i % 2 else 2 for i in range(1, steps)), 1]
        return sum(w * density(end * i / steps) for i, w in enumerate(weight)) * end
    share = area(math.asin(math.sqrt(one / (one + two)))) / area(math.pi / 2)
    return 2 * min(share, 1 - share)


def compare(groups, baseline):
    """{name: scores by seed} -> a row a group: n, mean, std, and against the baseline the difference, its 95 % interval
    (Welch's), t, degrees of freedom, two-sided p; the ratio of the spreads and its two-sided p (F test, which believes
    in normal scores). What one run cannot tell is None."""
    if baseline not in groups:
        raise ValueError(f"there is no group {baseline!r} to compare with: one of {', '.join(groups)}")
    table, (base, base_std) = [], mean_spread(groups[baseline])
    for name, scores in groups.items():
        mean, std = mean_spread(scores)
        row = dict(name=name, n=len(scores), mean=mean, std=std, difference=None, low=None, high=None, t=None, dof=None,
                   p=None, ratio=None, ratio_p=None)
        if name != baseline:
            row |= dict(difference=mean - base, ratio=std / base_std if std is not None and base_std else None)
            if std is not None and base_std is not None and std + base_std > 0:
                t, dof, p = welch(base, base_std, len(groups[baseline]), mean, std, len(scores))
                error = math.sqrt(base_std ** 2 / len(groups[baseline]) + std ** 2 / len(scores))
                reach = t_quantile(0.975, dof) * error
                row |= dict(ratio_p=f_test(base_std, len(groups[baseline]), std, len(scores)))
                row |= dict(t=t, dof=dof, p=p, low=mean - base - reach, high=mean - base + reach)
        table.append(row)
    return table


def sentence(row):
    """One row of `compare` in words."""
    if row["difference"] is None:
        spread = f" ± {row['std']:.2f}" if row["std"] is not None else ""
        return f"{row['name']}: {row['mean']:.2f}{spread} (n = {row['n']})"
    told = f"{row['name']}: {row['difference']:+.2f}"
    if row["t"] is None:
        return f"{told}; one run cannot say whether that is chance (n = {row['n']})"
    return (f"{told} (Welch t = {row['t']:.2f}, {row['dof']:.1f} degrees of freedom, p = {row['p']:.3f}), spread "
            + (f"× {row['ratio']:.1f} (F test p = {row['ratio_p']:.3f})" if row["ratio"] is not None else "from none"))


def draw(panels, title, ylabel="F1"):
    """{panel: {group: scores}} -> a figure: every run a mark, the mean a bar, ± one standard deviation a line."""
    from minimal import look
    fig, axes = look.axes(title, ylabel=ylabel, width=1 + 2.8 * len(panels), columns=len(panels))
    for ax, (panel, groups) in zip(axes if len(panels) > 1 else [axes], panels.items()):
        for x, (name, scores) in enumerate(groups.items()):
            mean, std = mean_spread(scores)
            spots = [x + 0.1 * (i - (len(scores) - 1) / 2) for i in range(len(scores))]
            ax.plot(spots, scores, look.MARKS[x % 8], color=look.COLOURS[x % 8], linestyle="none")
            ax.plot([x - 0.3, x + 0.3], [mean, mean], color=look.INK, linewidth=1.8)
            if std is not None:
                ax.vlines(x + 0.34, mean - std, mean + std, color=look.INK, linewidth=1)
        ax.set_xticks(range(len(groups)), [f"{name}\nn = {len(scores)}" for name, scores in groups.items()])
        ax.set_xlim(-0.6, len(groups) - 0.4)
        ax.set_title(panel, fontsize=10, loc="left")
    return fig
