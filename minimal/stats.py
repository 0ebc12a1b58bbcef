"""Did the mean move, or only the seeds? Groups of runs side by side, with every run shown."""

from minimal.records import mean_spread, t_quantile, welch


def compare(groups, baseline):
    """{name: scores by seed} -> a row a group: n, mean, std, and against the baseline the difference, its 95 % interval,
    Welch's t, degrees of freedom, two-sided p, and the ratio of the spreads. What two runs cannot tell is None."""
    if baseline not in groups:
        raise ValueError(f"there is no group {baseline!r} to compare with: one of {', '.join(groups)}")
    table, (base, base_std) = [], mean_spread(groups[baseline])
    for name, scores in groups.items():
        mean, std = mean_spread(scores)
        row = dict(name=name, n=len(scores), mean=mean, std=std, difference=None, low=None, high=None, t=None, dof=None,
                   p=None, ratio=None)
        if name != baseline:
            row |= dict(difference=mean - base, ratio=std / base_std if std is not None and base_std else None)
            if std is not None and base_std is not None and std + base_std > 0:
                t, dof, p = welch(base, base_std, len(groups[baseline]), mean, std, len(scores))
                reach = abs(t_quantile(0.975, dof) * (mean - base) / t) if t else None
                row |= dict(t=t, dof=dof, p=p, low=reach and mean - base - reach, high=reach and mean - base + reach)
        table.append(row)
    return table


def sentence(row):
    """One row of `compare` in words."""
    if row["difference"] is None:
        return f"{row['name']}: {row['mean']:.2f}" + (f" ± {row['std']:.2f}" if row["std"] is not None else "") + f" (n = {row['n']})"
    told = f"{row['name']}: {row['difference']:+.2f}"
    if row["t"] is None:
        return f"{told}; one run cannot say whether that is chance (n = {row['n']})"
    return (f"{told} (Welch t = {row['t']:.2f}, {row['dof']:.1f} degrees of freedom, p = {row['p']:.3f}), spread "
            + (f"× {row['ratio']:.1f}" if row["ratio"] else "from none"))


def draw(panels, value="F1", title=""):
    """{panel: {group: scores}} -> a figure: every run a point, the mean a bar, mean ± std a line; readable in grey."""
    import matplotlib.pyplot as plt
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.4), sharey=True, squeeze=False)
    for axis, (panel, groups) in zip(axes[0], panels.items()):
        for x, (name, scores) in enumerate(groups.items()):
            mean, std = mean_spread(scores)
            spots = [x + 0.12 * (i - (len(scores) - 1) / 2) / max(1, len(scores) - 1) for i in range(len(scores))]
            axis.plot(spots, scores, "os^Dv"[x % 5], color="0.35" if x else "0.6", markersize=5)
            axis.plot([x - 0.22, x + 0.22], [mean, mean], color="black", linewidth=2)
            if std is not None:
                axis.vlines(x + 0.22, mean - std, mean + std, color="black", linewidth=1)
        axis.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 2 else 0)
        axis.set_xlim(-0.6, len(groups) - 0.4)
        axis.set_title(f"{panel}, n = {'/'.join(str(len(s)) for s in groups.values())}", fontsize=10)
    axes[0][0].set_ylabel(value)
    figure.suptitle(title)
    figure.tight_layout()
    return figure
