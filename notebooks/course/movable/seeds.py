"""What may be claimed after so many seeds and so many steps? Intervals that open and close."""

import json

from course.movable.piece import PHONE, Control, Piece, fixed, moving_path, part, whole_numbers
from minimal.compare.intervals import t_quantile

FAR = 0.15  # nats at the ends of the axis; an interval beyond is cut there
LEFT, WIDE, HIGH = 120, 480, 26  # the axis, and a row
MIDDLE = LEFT + WIDE / 2
TOP = 16  # the first row's middle
PHONE_LABEL = 84  # where the axis begins on a phone
SHORTER = (PHONE - PHONE_LABEL - 12) / WIDE
ON_PHONE = PHONE_LABEL - SHORTER * LEFT


def differences(rows, baseline):
    """{plan: [[ahead of the baseline at each recorded step] for each seed]}, and the steps."""
    curves = {(row["plan"], row["seed"]): row["valid"] for row in rows}
    seeds = sorted(seed for plan, seed in curves if plan == baseline)
    steps = [step for step, _ in curves[baseline, seeds[0]]]
    found = {}
    for plan in dict.fromkeys(plan for plan, _ in curves):
        if plan == baseline or any((plan, seed) not in curves for seed in seeds):
            continue
        pairs = [(curves[plan, seed], curves[baseline, seed]) for seed in seeds]
        found[plan] = [
            [round(theirs - ours, 4) for (_, ours), (_, theirs) in zip(*pair, strict=True)]
            for pair in pairs
        ]
    return found, steps


def seeds_and_steps(rows, plans, baseline="standard"):
    """Recorded rows with curves: each plan's paired difference from the baseline, its interval by
    the number of seeds, at a moment of the training."""
    measured, steps = differences(rows, baseline)
    data = {plan: measured[plan] for plan in plans}
    seeds = len(data[plans[0]])
    reach = {n: round(t_quantile(0.975, n - 1) / n**0.5, 6) for n in range(2, seeds + 1)}

    def compute(v):
        found, clear, means = {}, [], {}
        for at, plan in enumerate(plans):
            y = TOP + HIGH * at
            values = [curve[v["step"]] for curve in data[plan][: v["seeds"]]]
            n, mean = len(values), sum(values) / len(values)
            means[plan], x = mean, place(mean)
            found[f"line{at}"], surely = "", False
            if n > 1:
                spread = (sum((value - mean) ** 2 for value in values) / (n - 1)) ** 0.5
                low, high = mean - reach[n] * spread, mean + reach[n] * spread
                found[f"line{at}"] = f"M{fixed(place(low))} {y} H{fixed(place(high))}"
                surely = low > 0 or high < 0
            ring = f"M{fixed(x - 6)} {y} a6 6 0 1 0 12 0 a6 6 0 1 0 -12 0 z"
            found[f"filled{at}"], found[f"open{at}"] = (ring, "") if surely else ("", ring)
            clear += [plan] if surely else []
        best = max(means, key=means.get)
        found["clear"] = f"clear of zero: {', '.join(clear) or 'none'}"
        found["best"] = f"furthest ahead on average: {best}, {fixed(means[best], 3)} nats"
        return found

    def draw(c, moving):
        bottom = TOP + HIGH * len(plans)
        for nats in (-0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15):
            signed = f"{nats:+.2f}".replace("-", "−") if nats else "0"
            x, kind = place(nats), "soft" if nats in (-0.1, 0, 0.1) else "soft spare"
            with part(c, right=ON_PHONE + SHORTER * x - x):
                c.text(x, bottom + 4, signed, 12, kind=kind)
        with part(c, right=PHONE_LABEL - LEFT):
            for at, plan in enumerate(plans):
                c.text(LEFT - 12, TOP + HIGH * at, plan, 12, "end")
        with part(c, right=ON_PHONE, wide=SHORTER):
            c.path([(MIDDLE, 2), (MIDDLE, bottom - 8)], "faint", tip=False)
            for at in range(len(plans)):
                moving_path(c, f"line{at}", moving, "ink", tip=False)
                moving_path(c, f"open{at}", moving, "box round", tip=False)
                moving_path(c, f"filled{at}", moving, "dark round", tip=False)

    script = f"""
const data = {json.dumps(data)}, reach = {json.dumps(reach)}, out = {{}}, clear = [];
const place = (nats) => {MIDDLE:g} + {WIDE / 2:g} * Math.max(-1, Math.min(1, nats / {FAR}));
let best = null, most = -Infinity;
Object.keys(data).forEach((plan, at) => {{
  const y = {TOP} + {HIGH} * at;
  const values = data[plan].slice(0, v.seeds).map((curve) => curve[v.step]);
  const n = values.length, mean = values.reduce((a, b) => a + b) / n, x = place(mean);
  let surely = false;
  out["line" + at] = "";
  if (n > 1) {{
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const far = reach[n] * Math.sqrt(squares / (n - 1)), low = mean - far, high = mean + far;
    out["line" + at] = `M${{place(low).toFixed(2)}} ${{y}} H${{place(high).toFixed(2)}}`;
    surely = low > 0 || high < 0;
  }}
  const ring = `M${{(x - 6).toFixed(2)}} ${{y}} a6 6 0 1 0 12 0 a6 6 0 1 0 -12 0 z`;
  out["filled" + at] = surely ? ring : "";
  out["open" + at] = surely ? "" : ring;
  if (surely) clear.push(plan);
  if (mean > most) [best, most] = [plan, mean];
}});
out.clear = "clear of zero: " + (clear.join(", ") || "none");
out.best = `furthest ahead on average: ${{best}}, ${{most.toFixed(3)}} nats`;
return out;
"""
    said = compute(dict(seeds=seeds, step=len(steps) - 1))
    alt = (
        f"Leads of {len(plans)} plans over {baseline}, a row each, with 95 percent intervals "
        f"over paired seeds; marks are filled where the interval excludes zero. With {seeds} "
        f"seeds after {steps[-1]} steps: {said['clear']}; {said['best']}."
    )
    moments = tuple((at, f"{step} steps") for at, step in enumerate(steps))
    controls = (
        Control("seeds", "seeds", whole_numbers(1, seeds), seeds - 1),
        Control("step", "after", moments, len(steps) - 1),
    )
    size, says = (LEFT + WIDE + 40, TOP + HIGH * len(plans) + 14), ("clear", "best")
    caption = f"Held-out nats a token ahead of {baseline}: right is better."
    return Piece(
        "seeds",
        "Seeds and steps",
        controls,
        draw,
        compute,
        script,
        size,
        size[1],
        alt,
        says,
        caption,
    )


def place(nats):
    """Where a difference lies on the axis."""
    return MIDDLE + WIDE / 2 * max(-1, min(1, nats / FAR))
