"""Did the mean move, or only the seeds? Intervals, paired differences, and tests of means and spreads."""

import math


def student(t, dof):
    """P(T <= t) of Student's t. With t = sqrt(dof) tan(a) the density is cos(a)^(dof-1): Simpson's rule on a."""
    end, n = math.atan(abs(t) / math.sqrt(dof)), 400
    weight = lambda i: 1 if i in (0, n) else 4 if i % 2 else 2
    area = sum(weight(i) * math.cos(end * i / n) ** (dof - 1) for i in range(n + 1)) * end / n / 3
    whole = math.sqrt(math.pi) * math.exp(
        math.lgamma(dof / 2) - math.lgamma((dof + 1) / 2)
    )  # from -pi/2 to pi/2
    return 0.5 + math.copysign(area / whole, t)


def t_quantile(p, dof):
    """The t below which a share p lies: 4.303 for p = .975 and two degrees of freedom (three seeds)."""
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if student(math.sqrt(dof) * math.tan(middle), dof) < p else (low, middle)
        )
    return math.sqrt(dof) * math.tan((low + high) / 2)


def mean_spread(values):
    """Mean, and standard deviation between runs (n - 1); one run has no spread (None)."""
    n, mean = len(values), math.fsum(values) / len(values)
    return mean, math.sqrt(
        math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    ) if n > 1 else None


def interval(values, share=0.95):
    """Mean, low, high of a t-interval; low and high are None where one value cannot give them."""
    mean, spread = mean_spread(values)
    if spread is None:
        return mean, None, None
    reach = t_quantile((1 + share) / 2, len(values) - 1) * spread / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def welch(mean1, std1, n1, mean2, std2, n2):
    """Welch's t of the second less the first, from means and deviations: t, degrees of freedom, two-sided p."""
    a, b = std1**2 / n1, std2**2 / n2
    t = (mean2 - mean1) / math.sqrt(a + b)
    dof = (a + b) ** 2 / (a**2 / (n1 - 1) + b**2 / (n2 - 1))
    return t, dof, 2 * (1 - student(abs(t), dof))


def paired(rows, metric, baseline="standard", share=0.95, plans=None, cells=None):
    """Each plan against the baseline on the same (size, seed): one dict a plan with n, mean, spread, difference, low,
    high, clear (the interval excludes 0) and missing, the cells that plan or baseline lacks. Name `plans` or `cells`
    [(size, seed)] to have absent ones reported too."""
    if rows and not any(metric in row for row in rows):
        raise ValueError(f"no row has a {metric!r}: choose one of {', '.join(rows[0])}")
    grid = {}
    for row in rows:
        cell = grid.setdefault(row["plan"], {})
        key = (row.get("size"), row.get("seed"))
        if key in cell:
            raise ValueError(
                f"two rows for {row['plan']}, size {key[0]}, seed {key[1]}; "
                "keep one budget: filter the rows by steps or tokens first"
            )
        value = row.get(metric)
        if value is not None and math.isfinite(value):  # a run that blew up has no value
            cell[key] = value
    wanted = cells or sorted({(row.get("size"), row.get("seed")) for row in rows}, key=str)
    base = grid.get(baseline, {})
    table = []
    for plan in plans or grid:
        own = {key: value for key, value in grid.get(plan, {}).items() if key in wanted}
        both = [key for key in wanted if key in own and key in base]
        mean, spread = mean_spread(list(own.values())) if own else (None, None)
        change, low, high = (
            interval([own[key] - base[key] for key in both], share) if both else (None, None, None)
        )
        table.append(
            dict(
                plan=plan,
                n=len(both),
                mean=mean,
                spread=spread,
                difference=change,
                low=low,
                high=high,
                clear=low is not None and plan != baseline and not low <= 0 <= high,
                missing=[key for key in wanted if key not in both],
            )
        )
    return table


def f_test(std1, n1, std2, n2):
    """Two-sided p for equal variances: the share of a Beta((n1 - 1) / 2, (n2 - 1) / 2) below S1 / (S1 + S2), sums of
    squares. In x = sin² a its density is sin(a)^(n1 - 2) cos(a)^(n2 - 2), smooth: Simpson's rule on a."""
    one, two, steps = (n1 - 1) * std1**2, (n2 - 1) * std2**2, 400
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
        raise ValueError(
            f"there is no group {baseline!r} to compare with: one of {', '.join(groups)}"
        )
    table, (base, base_std) = [], mean_spread(groups[baseline])
    for name, scores in groups.items():
        mean, std = mean_spread(scores)
        row = dict(
            name=name,
            n=len(scores),
            mean=mean,
            std=std,
            difference=None,
            low=None,
            high=None,
            t=None,
            dof=None,
            p=None,
            ratio=None,
            ratio_p=None,
        )
        if name != baseline:
            row |= dict(
                difference=mean - base,
                ratio=std / base_std if std is not None and base_std else None,
            )
            if std is not None and base_std is not None and std + base_std > 0:
                t, dof, p = welch(base, base_std, len(groups[baseline]), mean, std, len(scores))
                error = math.sqrt(base_std**2 / len(groups[baseline]) + std**2 / len(scores))
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
    return (
        f"{told} (Welch t = {row['t']:.2f}, {row['dof']:.1f} degrees of freedom, p = {row['p']:.3f}), spread "
        + (
            f"× {row['ratio']:.1f} (F test p = {row['ratio_p']:.3f})"
            if row["ratio"] is not None
            else "from none"
        )
    )
