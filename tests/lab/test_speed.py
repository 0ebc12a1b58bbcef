"""What is measured of generation, of a busy machine, and what of it is told?"""

import json
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from course import memory
from evidence.bench import busy, generation, table, token_profile
from minimal.generate import generate
from minimal.model import still
from minimal.model.config import size as named
from minimal.variants import build

# ---- generation ----------------------------------------------------------------------------------


def test_generation_is_timed_beside_its_floor_and_texts_continue_together(capsys):
    shapes, plans = ((1, 64), (4, 64)), generation.PLANS
    rows = generation.generation(shapes, size="smoke", tokens=2, rounds=2, buffer=1000)
    rows = json.loads(json.dumps(rows))
    assert [(row["texts"], row["plan"]) for row in rows] == [
        (texts, plan) for texts, _ in shapes for plan in plans
    ]
    for row in rows:
        assert row["tokens_per_second"] > 0 and row["floor_tokens_per_second"] > 0
        assert row["times_standard"] > 0 and 1 <= row["bytes_allow"] < 2
    assert "64 tokens of context, bov-every" in capsys.readouterr().out
    for alone, together in zip(rows[: len(plans)], rows[len(plans) :], strict=True):
        # caches are rounded up alike; weights are read once for all texts
        assert together["held_bytes"] == 4 * alone["held_bytes"]
        assert 1 < together["read_bytes"] / alone["read_bytes"] < 4
    texts = generation.Text("bov", "smoke", 64, 2, texts=4)
    assert texts().shape == (4, 3)


def test_rivals_the_recorded_step_and_prompts_stand_in_the_same_table(capsys):
    how = dict(plans=("standard", "bov"), size="smoke", tokens=2, rounds=2, buffer=1000)
    rows = generation.generation(((2, 64),), prompts=((2, 64),), way="recorded", rivals=True, **how)
    names = [row["plan"] for row in rows]
    here = ["transformers"] if generation.Transformers.is_here() else []
    assert names == ["standard", "bov", "plain loop", *here, "standard", "bov"]
    assert [row.get("prefill", False) for row in rows] == [False] * (len(rows) - 2) + [True] * 2
    for row in rows:
        low, high = row["interval"]
        assert low <= row["times_standard"] <= high and row["clock"] == "processor"
    assert "prefill" in capsys.readouterr().out


def test_the_plain_loop_stands_beside_every_row(capsys):
    """And the compiled loop beside what is compiled."""
    rows = generation.price(size="smoke", shapes=((1, 64, 3), (2, 64, 3)))
    assert [(row["texts"], row["plan"]) for row in rows] == [
        (texts, plan) for texts in (1, 2) for plan in ("standard", "bov", generation.PLAIN_RIVAL)
    ]
    for row in rows:
        assert row["times_loop"] > 0 and (
            row["plan"] != generation.PLAIN_RIVAL or row["times_loop"] == 1
        )
    assert capsys.readouterr().out.count("times the plain loop") == len(rows)
    taken = {"bov": [3.0], "bov, compiled": [1.0], generation.PLAIN_RIVAL: [6.0]}
    assert generation.times_loop(taken, "bov") == 2
    assert generation.times_loop(taken, "bov, compiled") is None, "there is no such loop"
    taken[generation.COMPILED_RIVAL] = [0.5]
    assert generation.times_loop(taken, "bov, compiled") == 0.5
    assert generation.times_loop(taken, "bov, compiled", "cuda") == 6, "compiled is the loop there"


def test_beside_the_recorded_loop_stands_the_loop_that_python_calls():
    """Of the same weights and the same cache, which would not fit twice."""
    loop = generation.Loop("smoke", 64, 2)
    loop.through = loop.take = None  # a recording, of layers that are compiled
    eager = loop.called()
    eager()
    assert eager.layers is loop.layers and loop.take is None
    assert eager.take == eager.step and eager.through == eager.layer


def test_the_compilers_step_continues_the_same_text_in_the_same_cache(monkeypatch):
    """What the compiler makes of a step is asked in tests/model/test_still.py."""
    monkeypatch.setattr(still, "Made", lambda: lambda work, *tensors: work())
    plain = generation.Text("bov", "smoke", 64, 5)
    compiled = plain.compiled()
    said = []
    for text in (plain, compiled, plain):
        plain.chance.manual_seed(7)
        said.append(text())
    assert torch.equal(said[0], said[1]) and torch.equal(said[0], said[2])
    assert isinstance(compiled.step, still.StillStep) and compiled.step.compile
    assert compiled.cache is plain.cache and compiled.model is plain.model


def test_of_a_gpu_kernels_are_told_and_launches_are_not():
    def event(key, us, kind=DeviceType.CPU):
        times = dict(self_device_time_total=us, self_cpu_time_total=7)
        return SimpleNamespace(key=key, device_type=kind, **times)

    events = [event("gemm", us, DeviceType.CUDA) for us in (10, 12, 500)]
    events += [event("cudaGraphLaunch", 30)] * 3
    assert token_profile.per_token(events, 3, on_gpu=True) == {"gemm": (1, 12)}
    assert token_profile.per_token(events, 3, on_gpu=False)["cudaGraphLaunch"] == (1, 7)


def test_a_token_is_told_operator_by_operator():
    found = token_profile.one_token(size="smoke", length=64, tokens=2)
    ours, loop = found.values()
    products = "aten::mm"  # q, k, v, out, up and down of two layers, and the head
    assert ours[products][0] == loop[products][0] == 13 and ours[products][1] > 0
    assert {"outside", "aten::mm"} <= set(ours) & set(loop)
    lines = token_profile.as_table(found).splitlines()
    assert lines[0] == "| operator | ours: calls | ours: µs | plain loop: calls | plain loop: µs |"
    assert len(lines) == 2 + token_profile.SHOWN + 2 and lines[-1].startswith("| `sum` |")
    of_ours = [float(row.split(" | ")[2].replace(",", "")) for row in lines[2:]]
    assert abs(sum(of_ours[:-1]) - of_ours[-1]) <= len(of_ours), "the rest is not forgotten"


def test_an_interval_holds_the_middle_of_the_rounds():
    assert generation.interval([3, 1, 2]) == [1, 3], "of few rounds it is all of them"
    assert generation.interval(range(9)) == [1, 7]  # 20 of 512 chances lie outside
    assert generation.interval(range(20)) == [5, 14]


def test_rounds_begin_when_two_agree():
    times = iter([9.0, 2.0, 1.05, 1.0, 1.0])
    generation.warm_up(dict(one=None), lambda way: next(times))
    assert list(times) == [1.0]


@pytest.mark.parametrize("plan", (*generation.PLANS, "bov-gqa", "mla"))
def test_random_rows_lie_as_a_prefill_leaves_them(plan):
    """A cache that is filled, at a small length, against one that a text has filled."""
    model = build(plan, named("tiny", windows="L")).eval()
    ids = torch.randint(model.config.vocab, (1, 50))
    real, random = model.cache(60), memory.filled(model, 50, capacity=60)
    with torch.inference_mode():
        model(ids, cache=real)
    lying = lambda cache: {name: (x.shape, x.stride(), x.dtype) for name, x in cache.kept.items()}
    assert lying(random) == lying(real)
    assert random.filled == real.filled and random.length == real.length == 50


@pytest.mark.parametrize("plan", ("standard", "bov"))
def test_a_cache_that_continues_gives_the_tokens_of_the_whole_text(plan):
    """What is timed is generate: with the rows of a real text it says what it says without them."""
    model = build(plan, "tiny").eval()
    ids = torch.randint(model.config.vocab, (1, 30), generator=torch.Generator().manual_seed(0))
    whole = generate(model, ids, 6, temperature=0)
    cache = model.cache(40)
    with torch.inference_mode():
        model(ids[:, :-1], cache=cache)
    assert torch.equal(generate(model, ids[:, -1:], 6, temperature=0, cache=cache), whole[:, 29:])


def test_what_a_token_reads_is_counted_on_the_tensors_that_it_reads():
    text = {plan: generation.Text(plan, "tiny", 9000, 1) for plan in generation.PLANS}
    read = {plan: one.read_bytes() for plan, one in text.items()}
    layer = 9001 * 64 * 4  # keys, or stored values, of one layer
    words = {name: text[name].cache.kept["ids"][:, :9000] for name in ("bov", "bov-every")}
    words = {name: torch.cat([ids, ids.new_zeros(1, 1)], 1) for name, ids in words.items()}
    rows = {name: ids.unique().numel() * 64 * 4 + 4 * 9001 for name, ids in words.items()}
    weights = lambda plan: read[plan] - text[plan].model.config.layers * layer
    assert read["standard"] == read["svformer"] + weights("standard") - weights("svformer")
    spared = {"bov": 4 * (layer - rows["bov"]), "bov-every": 12 * (layer - rows["bov-every"])}
    for plan, bytes_spared in spared.items():
        matrices = {"bov": 4, "bov-every": 12}[plan] * 64 * 64 * 4  # W_V, which tables replace
        gains = {"bov": 4, "bov-every": 12}[plan] * 4
        assert read[plan] == read["standard"] - bytes_spared - matrices + gains
    assert text["bov"].cache.length == 9000, "as if nothing had been read"


@pytest.mark.parametrize("plan", (*generation.PLANS, "bov-gqa"))
def test_no_step_copies_the_cache(plan):
    """Buffers stay where they are, and nothing as large as one layer's keys is laid out."""
    text = generation.Text(plan, "tiny", 5000, 2)
    text()
    before = {name: rows.data_ptr() for name, rows in text.cache.kept.items()}
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        text()
    assert {name: rows.data_ptr() for name, rows in text.cache.kept.items()} == before
    keys = min(rows.nbytes for name, rows in text.cache.kept.items() if name[0] == "k")
    largest = max(event.self_cpu_memory_usage for event in seen.events())
    assert largest < keys / 4, (largest, keys)


def test_keys_and_values_lie_head_by_head():
    cache = build("standard", "tiny").cache(40)
    cache.append(("k", 0), torch.randn(1, 7, 2, 32))
    assert cache.kept["k", 0].transpose(1, 2).is_contiguous()
    assert cache.append(("latent", 0), torch.randn(1, 7, 32)).shape == (1, 7, 32)


# ---- a busy machine ------------------------------------------------------------------------------


def test_runs_are_timed_alone_and_beside_their_neighbours():
    sizes = dict(size="smoke", batch=2, seconds=0.01, rounds=1)
    found = busy.busy(spins=dict(ours=None), **sizes)
    assert list(found) == ["ours"]
    for row in json.loads(json.dumps(found)).values():
        assert set(row["step_ms"]) == {"alone", "two_runs", "beside_a_loop"}
        assert set(row["slower"]) == {"two_runs", "beside_a_loop"}
        assert row["side_by_side_over_in_turn"] == row["slower"]["two_runs"] / 2
    assert "beside the same run" in busy.report(found)


def test_a_run_that_dies_ends_the_measurement():
    with pytest.raises(RuntimeError, match="ended early"):
        busy.together(None, size="no such size", seconds=0.01)


def test_ours_is_what_minimal_says_and_not_what_this_process_was_told(monkeypatch):
    monkeypatch.setenv("GOMP_SPINCOUNT", "5")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ours, default = busy.environment(None), busy.environment(busy.SPINS["libgomp"])
    assert "GOMP_SPINCOUNT" not in ours and "OMP_NUM_THREADS" not in ours
    assert default["GOMP_SPINCOUNT"] == "300000"


# ---- what is told --------------------------------------------------------------------------------

OLD = dict(cpu="x86_64", capability="AVX2", threads=2, cores=4)
NEW = dict(OLD, model="A Processor 1.0", capability="AVX512", cores=2)


def decode_row(times, machine):
    ms = dict(v_cache=6.0, products=4.8, histogram=4.0)
    length = dict(
        ms, faster=dict(histogram=times), floor=dict(histogram=1.7), histogram_over_materialise=6.0
    )
    length["distinct"] = 32768  # a quarter of the keys: 3.25 times K in place of 2 / 1.7
    short = dict(length, front_door_over=dict(rows=1.2, sorted=1.1, v_cache=0.9))
    return dict(part="decode_cpu", machine=machine, result={"8192": short, "131072": length})


def test_every_ratio_stands_beside_its_machine_and_the_last_one_counts():
    rows = [decode_row(2.0, OLD), decode_row(1.5, NEW), decode_row(3.0, OLD)]
    lines = table.speed_table(rows).splitlines()
    assert lines[:2] == table.HEAD.splitlines()
    old, new = "x86_64, AVX2, 2 of 4 cores", "A Processor 1.0, AVX512, 2 of 2 cores"
    assert all(line.count("|") == 5 and (old in line) != (new in line) for line in lines[2:])
    through = [line for line in lines if "through the histogram" in line]
    cells = [line.split("|")[2].strip() for line in through]
    assert cells == ["3.00 (bytes 1.70)", "1.50 (bytes 1.70)"]
    assert "| 6.0 (bytes 2.8) | 5, more than bytes allow |" in table.speed_table(rows)
    assert "| 0.90 | 1 |" in table.speed_table(rows), "the front door against the best of three"
    assert "| 1.20 |  |" in table.speed_table(rows), "4.8 ms of two products over 4.0"


def test_times_over_a_v_cache_are_over_the_best_one_on_every_processor():
    """Two ways to read a stored V, and each is the better one on some machine."""

    def row(machine, v_cache, products):
        ms = dict(v_cache=v_cache, products=products, histogram=2.0, sorted=4.0, rows=8.0)
        one = dict(ms, materialise=40.0, floor=dict(histogram=1.7), faster=dict(histogram=3.0))
        return dict(part="decode_cpu", machine=machine, result={"8192": one, "131072": one})

    found = table.decode_times(
        [row(OLD, 6.0, 4.0), row(NEW, 4.0, 5.0), dict(part="dva", machine=NEW, result={})]
    )
    assert list(found) == ["AVX2, 4 cores", "A 1.0 AVX512, 2 cores"]
    for times in found.values():
        assert times["histogram"] == [2.0, 2.0] and times["rows"] == [0.5, 0.5]
        assert times[table.FLOOR] == [1.7, 1.7] and times[table.FLATTERING] == [3.0, 3.0]


def test_processors_with_the_same_instructions_are_told_apart():
    xeon, epyc = (dict(NEW, model=model) for model in ("Intel(R) Xeon(R) Processor", "AMD EPYC"))
    names = [table.short_name(machine) for machine in (OLD, xeon, epyc)]
    assert names == ["AVX2, 4 cores", "Xeon AVX512, 2 cores", "EPYC AVX512, 2 cores"]


def test_generation_and_a_busy_machine_are_told_with_what_bytes_allow():
    row = lambda plan, times, allow: dict(
        plan=plan, length=131072, times_standard=times, bytes_allow=allow
    )
    generated = [row("standard", 1.0, 1.0), row("bov", 1.1, 1.2), row("bov-every", 1.8, 1.9)]
    beside = lambda two, loop: dict(slower=dict(two_runs=two, beside_a_loop=loop))
    busy_rows = dict(ours=beside(2.1, 1.9), libgomp=beside(99.0, 9.0))
    rows = [
        dict(part="generate_cpu", machine=NEW, result=generated),
        dict(part="busy", machine=NEW, result=busy_rows),
    ]
    told = table.speed_table(rows)
    assert "bov, times standard | 1.10 (bytes 1.20) | 1.3, more than bytes allow |" in told
    assert "bov-every, times standard | 1.80 (bytes 1.90) | 1.3 |" in told
    assert "2.10 (with libgomp's own spinning 99.0) | 2.5 |" in told


def test_whole_generations_are_told_with_their_interval_and_prompts_apart():
    whole = dict(texts=4, length=1024, tokens_per_second=730.6, interval=[0.91, 1.05])
    step = whole | dict(plan="bov", times_standard=0.96, bytes_allow=1.01, share=0.15)
    prompt = whole | dict(plan="bov", times_standard=1.0, prefill=True)
    rows = [dict(part="generate_cpu", machine=NEW, result=found) for found in ([], [step, prompt])]
    assert table.whole_steps(rows) == [step]
    assert "bov, times standard" not in table.speed_table(rows)
    told = table.generation_table(rows).splitlines()[2:]
    assert told[0] == "| 4 x 1,024 | bov | 731 | 15% | 0.96 (0.91 to 1.05) | 1.01 |"
    assert told[1] == "| 4 x 1,024 | bov, prompt | 731 |  | 1.00 (0.91 to 1.05) |  |"
