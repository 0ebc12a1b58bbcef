"""Which of the sources' claims do our recorded runs decide? A claim is a few comparisons, and paired seeds judge them.

    python -m minimal.verdicts      write what the records say into notebooks/evidence/claims.json

Nobody chooses a verdict that is listed here: it follows from the files, and a test fails when the two disagree.
"""

import json

from minimal import records

LITTLE = 0.02  # nats a token that we call little: about the spread of one plan between seeds
SEEDS = 3  # pairs below which nothing is decided
WAR = ("thirteen_rows", "residuals", "sharing")  # one corpus, size and budget: their runs compare with each other

# claim: (files, comparisons). "a < b": a ends lower; "a ~ b": they differ by little; "a <~ b": a is worse by little at
# most. Where a file has several settings (lengths, depths), a comparison must hold in each.
ASKED = {
    "res-beats": (("sizes",), ["resformer < standard"]),
    "res-lengths": (("lengths",), ["resformer < standard"]),
    "res-rivals": (WAR, ["resformer < denseformer", "resformer < neutreno"]),
    "res-combined": (WAR, ["resformer-neutreno < resformer"]),
    "res-only-values": (WAR, ["resformer < standard", "resformer < residual-q", "resformer < residual-k"]),
    "res-gold": (WAR, ["cross-mean < cross", "cross-mean < identity"]),
    "res-first": (WAR, ["resformer < cross-mean", "resformer < cross-all"]),
    "sv-gqa": (WAR, ["svformer < gqa", "svformer < cla"]),
    "sv-with-gqa": (WAR, ["svformer-gqa <~ gqa"]),
    "sv-keys": (WAR, ["share-v2 < share-k2"]),
    "sv-q-k": (WAR, ["svformer < share-q", "svformer < share-k"]),
    "sv-anchors": (WAR, ["svformer-anchors < svformer"]),
    "bov-deep": (WAR, ["row6 < standard", "row9 < standard", "bov < standard"]),
    "bov-row2": (WAR, ["standard < row2"]),
    "bov-every": (WAR, ["standard < row3", "row5 < standard"]),
    "bov-alternate": (WAR, ["row6 < row4", "row9 < row7"]),
    "bov-adding-v": (WAR, ["row11 ~ row6", "row13 ~ row9"]),
    "bov-specific": (WAR, ["row8 < row5", "row9 < row6"]),
    "bov-uneven": (WAR, ["row11 < row10", "row13 < row12"]),
    "bov-shared": (WAR, ["bov < bov-shared"]),
    "bov-fixed": (WAR, ["bov < bov-fixed"]),
    "bov-every-layer": (WAR, ["bov < bov-every"]),
    "bov-keep": (WAR, ["bov-keep ~ bov"]),
    "bov-skipv1": (WAR, ["standard < svformer", "standard < skipv1"]),
    "dva-loss": (("dva_factorial",), ["dva/one/noffn/nowo < standard/many/ffn/wo"]),
    "dva-no-ffn": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/one/ffn/nowo"]),
    "dva-one-head": (("dva_factorial",), ["dva/one/noffn/nowo <~ dva/many/noffn/nowo"]),
    "dva-learned": (("dva_factorial",), ["dva/one/noffn/nowo < dva-random/one/noffn/nowo"]),
}


def settings(files):
    """{what the runs were asked, as text: their rows}: only runs of one setting are compared."""
    groups = {}
    for file in files:
        if (records.EVIDENCE / f"{file}.json").exists():
            for row in records.read(file)["rows"]:
                groups.setdefault(json.dumps(row["asked"], sort_keys=True), []).append(row)
    return groups


def holds(relation, low, high):
    """Does the interval of a - b say so? True, False, or None where it cannot tell."""
    yes, no = {"<": (high < 0, low > 0), "<~": (high < LITTLE, low > LITTLE),
               "~": (-LITTLE < low and high < LITTLE, low > LITTLE or high < -LITTLE)}[relation]
    return True if yes else False if no else None


def compared(files, comparison):
    """One dict a setting: the comparison, the setting, n, difference, low, high, and whether it holds."""
    first, relation, second = comparison.split()
    found = []
    for setting, rows in settings(files).items():
        ours = [row for row in rows if row["plan"] in (first, second)]
        (row,) = records.paired(ours, "loss", second, plans=[first])
        if row["n"]:
            enough = row["n"] >= SEEDS
            found.append(dict(first=first, second=second, setting=json.loads(setting),
                              **{name: row[name] for name in ("n", "difference", "low", "high")},
                              holds=holds(relation, row["low"], row["high"]) if enough else None, enough=enough))
    return found


def sentence(found, several):
    """One comparison in words, the setting named only where there are several."""
    setting = {k: v for k, v in found["setting"].items() if k not in ("corpus", "steps", "batch")}
    at = " at " + ", ".join(f"{k} {v}" for k, v in (setting.pop("changes", {}) | setting).items()) if several else ""
    told = f"{found['first']} less {found['second']}{at}: {found['difference']:+.3f} nats"
    if found["n"] == 1:
        return f"{told} (one seed)"
    return f"{told} ({found['low']:+.3f} to {found['high']:+.3f}, {found['n']} seeds)"


def judged(claim):
    """-> (verdict, evidence file or None, what was measured in words) of a claim that is listed above."""
    files, comparisons = ASKED[claim]
    parts = [compared(files, comparison) for comparison in comparisons]
    every = [found for part in parts for found in part]
    said = "; ".join(sentence(found, len(part) > 1) for part in parts for found in part)
    if any(found["holds"] is False for found in every):
        verdict = "not reproduced"
    elif not all(parts) or not all(found["enough"] for found in every):
        verdict = "open"
    else:
        verdict = "reproduced" if all(found["holds"] for found in every) else "not testable at our scale"
        said += "" if verdict == "reproduced" else ": too close for our seeds to tell"
    return verdict, f"notebooks/evidence/{files[0]}.json" if every else None, said and said + "."


def settled(book):
    """The claims as they stand in the file, those listed above with the verdict that the records give."""
    told = []
    for claim in book:
        if claim["id"] in ASKED:
            verdict, evidence, measured = judged(claim["id"])
            claim = claim | dict(verdict=verdict, evidence=evidence or claim["evidence"], measured=measured)
        told.append(claim)
    return told


def main():
    path, book = records.EVIDENCE / "claims.json", records.claims()
    told = settled(book)
    lines = ",\n ".join(json.dumps(claim, ensure_ascii=False) for claim in told)
    records.put(path, f"[\n {lines}\n]\n")
    for old, new in zip(book, told):
        if old != new:
            print(f"{new['id']:18}{new['verdict']:28}{new['measured']}")


if __name__ == "__main__":
    main()
