# The commands of the course. `make` alone lists them; the two that matter are `make lab` and `make test`.
#   PYTHON=…   the Python that makes .venv (found by itself when empty); another one than .venv's makes it anew
#   TORCH=…    cpu or cuda: which build of torch; empty takes cpu on Linux without an NVIDIA card, else what the index offers
#   EXTRAS=…   hub, site, parity, with commas: what texts from a hub, decks and site, and comparisons need beyond the course
#   ARGS=…     a list of words for the program behind the target, read by the shell: quote what holds a blank
# All others are one word each, whatever they hold: a file may be called 'kv_cache (1).py'.
# The last choice of TORCH and EXTRAS is remembered in .venv, so the set-up is quick from the second time on.

VENV    := .venv
PY      := $(VENV)/bin/python
PIP     := $(PY) -m pip --disable-pip-version-check
UV      := $(PY) -m uv pip install --python $(PY) -c hashes.txt --build-constraints hashes.txt
TORCH   ?= $(patsubst $(VENV)/.torch-%,%,$(wildcard $(VENV)/.torch-*))
comma   := ,
extras  := $(sort $(subst $(comma), ,$(EXTRAS)) $(patsubst $(VENV)/.extra-%,%,$(wildcard $(VENV)/.extra-*)))
chosen  := $(TORCH:%=$(VENV)/.torch-%) $(extras:%=$(VENV)/.extra-%)
PROFILE ?= laptop
MINUTES ?= 30
quoted   = '$(subst ','\'',$(value $(1)))'
unexport FILE HW NOTEBOOK PART PROFILE MINUTES PYTHON DRY
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process would compile torch's and our modules again
# Whichever course .venv was made for, commands are this one's.
export PYTHONPATH := $(CURDIR):$(CURDIR)/notebooks$(addprefix :,$(PYTHONPATH))
as_root := $(if $(filter 0,$(shell id -u)),--allow-root)

$(if $(filter-out cpu cuda,$(TORCH)),$(error TORCH is cpu or cuda, not '$(TORCH)'))
$(if $(filter-out hub site parity,$(extras)),$(error EXTRAS may name hub, site and parity, not '$(EXTRAS)'))
$(foreach goal,$(filter grade gradescope,$(MAKECMDGOALS)),$(if $(value HW),,$(error say which unit: make $(goal) HW=hw03)))
$(if $(filter reset,$(MAKECMDGOALS)),$(if $(value HW)$(value NOTEBOOK),,$(error say which unit: make reset HW=hw03, or which notebook: make reset NOTEBOOK=04)))

.DELETE_ON_ERROR:
.PHONY: help setup lab test check doctor clean
help:
	@sed -n 's/^## //p' Makefile

## make lab         set up .venv, copy notebooks into work/, open JupyterLab on 00 there (LAB_ARGS=--no-browser for a server)
first := work/00_start_here.ipynb
lab: export JUPYTER_CONFIG_PATH := $(CURDIR)/notebooks/lab$(addprefix :,$(JUPYTER_CONFIG_PATH))
lab: work
	$(PY) -m jupyterlab --LabApp.default_url=/lab/tree/$(first) $(as_root) $(LAB_ARGS)

## make work        your copies in work/: made where missing, renewed where you changed nothing
.PHONY: work
work: setup
	@$(PY) -m course.work $(ARGS)

## make test        set up .venv and work/, then run every test, on all cores (ARGS=-n0: in one process)
test: setup
	@$(PY) -m course.work
	$(PY) -m pytest -n auto $(ARGS)

## make check       the quick inner loop: the linter, then the tests of the package's heart, less the slow ones
check: setup
	@echo "make check lints, then runs tests/{model,training,data,kernels} without the tests marked slow; make test runs everything"
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m pytest -n auto tests/model tests/training tests/data tests/kernels -m "not slow" $(ARGS)

## make doctor      what this machine has and what it lacks; works before set-up too
doctor:
	@p=$(PY); test -x $$p || p=$(if $(value PYTHON),$(call quoted,PYTHON),python3); "$$p" -m course.doctor $(ARGS)

## make setup       only the set-up: .venv with the pinned packages (PYTHON=… TORCH=cpu|cuda EXTRAS=hub,site,parity)
setup: $(VENV)/.ready $(extras:%=$(VENV)/.extra-%)

# The pins have wheels for Python 3.11 to 3.14; networkx refuses 3.14.1. Up to date or not, .venv is made anew and all is installed again where
# its Python does not run (its link leads nowhere once the Python that made it has gone), does not fit (an editor made
# it), or is another than the command line names; an environment that names one for all programs does not count. No work
# of anybody lies there. The package alone is installed again where .venv/.ready names another folder: the course was
# renamed or copied.
.PHONY: again
fits  := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14) or sys.version_info[:3] == (3, 14, 1))
which := import sys; print(sys.version)
same  := test "$$($(PY) -c '$(which)')" = "$$($(call quoted,PYTHON) -c '$(which)')"
asked := $(and $(filter command%,$(origin PYTHON)),$(value PYTHON))
bare  := $(shell { $(PY) -c '$(fits)' $(if $(asked),&& $(same)); } 2>/dev/null || echo again)
named := $(shell cat $(VENV)/.ready 2>/dev/null)
moved := $(if $(named),$(if $(subst <$(CURDIR)>,,<$(named)>),again))

# A new .venv notes its choices, as older than all else: they are still to be installed, and not forgotten where what
# follows does not finish.
.PRECIOUS: $(chosen)
$(PY): $(bare)
	@for p in $(if $(value PYTHON),$(call quoted,PYTHON),python3 python3.13 python3.12 python3.11 python3.14); do \
	    "$$p" -c '$(fits)' >/dev/null 2>&1 && found="$$p" && break; done; \
	test -n "$$found" || { printf 'set-up needs Python 3.11 to 3.14 (not 3.14.1) and %s: install one, or name it: make setup PYTHON=/path/to/python3.13\n' \
	    $(if $(value PYTHON),$(call quoted,PYTHON)' is not one','none is on the PATH') >&2; exit 1; }; \
	"$$found" -c 'import venv, ensurepip' >/dev/null 2>&1 || { echo "$$found cannot make virtual environments (it lacks" \
	    "ensurepip): install its venv package (Debian, Ubuntu: apt install python3-venv), or name another PYTHON=…" >&2; exit 1; }; \
	echo "making $(VENV) with $$found"; "$$found" -m venv --clear $(VENV)$(if $(strip $(chosen)), && touch -t 198001020000 $(chosen))

from_cpu := --index-url https://download.pytorch.org/whl/cpu
$(VENV)/.torch-cpu $(VENV)/.torch-cuda: $(VENV)/.torch-%: constraints.txt $(bare) | $(PY)
	$(PIP) install --no-compile -c constraints.txt --force-reinstall --no-deps $(from_$*) torch
	@rm -f $(VENV)/.torch-* && touch $@

# Without a card the CUDA build would be gigabytes for nothing. The doctor knows; nobody is asked, and where PyTorch's
# own index cannot be reached, this is no reason to stop.
by_itself = case $$($(PY) -m course.doctor --torch) in cpu) echo "no NVIDIA card here: torch comes as its CPU build" \
    "(make setup TORCH=cuda takes the other)"; $(PIP) install --no-compile -c constraints.txt --no-deps --retries 0 --timeout 10 \
    $(from_cpu) torch || echo "PyTorch's own index cannot be reached: torch comes as the package index offers it";; esac

# pip finds torch, whichever way this machine has it: it comes in several builds, so it alone has no hash here, nor has
# what its CUDA build pins by itself. uv brings the rest, in a tenth of the time. What is imported first is compiled
# here, once, by two processes: graded code may write nothing there, and tests begin on all cores.
$(VENV)/.ready: pyproject.toml constraints.txt hashes.txt $(TORCH:%=$(VENV)/.torch-%) $(bare) $(moved) | $(PY)
	@echo "installing the pinned packages into $(VENV): once, some minutes, 2 GB (more with CUDA)"
	@$(if $(TORCH),,$(by_itself))
	@sed -n '/^uv==/,/[^\]$$/p' hashes.txt > $(VENV)/uv.txt
	$(PIP) install --no-compile --no-deps -c constraints.txt torch && $(PIP) install --no-compile --require-hashes -r $(VENV)/uv.txt && \
	$(UV) -e '.[course,test]' || { echo "set-up did not finish: the lines above say why;" \
	    "it needs the package index this once" >&2; exit 1; }
	@$(PY) notebooks/course/beside.py
	@$(PY) -c 'import sympy, scipy.stats, pandas' & $(PY) -c 'import torch._dynamo' && wait $$!
	@printf '%s\n' $(call quoted,CURDIR) > $@

$(VENV)/.extra-site: $(wildcard package.json package-lock.json)
$(VENV)/.extra-%: $(VENV)/.ready
	$(UV) --quiet -e '.[course,test,$*]'
	$(if $(and $(filter site,$*),$(wildcard package.json)),npm ci --no-audit --no-fund)
	@touch $@

## make course      execute every notebook; pages under build/ (PROFILE=smoke|laptop|gpu)
.PHONY: course
course: setup
	$(PY) notebooks/run.py --profile $(call quoted,PROFILE) $(ARGS)

## make bench       measure this machine's speed; the last line is JSON (PART=decode,dva,train|generate|price|token|busy|corners|profile|race|gpu)
.PHONY: bench
bench: setup
	$(PY) -m evidence.bench $(if $(value PART),--part $(call quoted,PART)) $(ARGS)

## make gpu         on a rented GPU: check, measure, train three models (MINUTES=30); DRY=1 tries it out on a CPU
.PHONY: gpu
gpu: setup
	$(if $(value DRY),TRITON_INTERPRET=1) $(PY) -m evidence.bench.rented --minutes $(call quoted,MINUTES) $(if $(value DRY),--dry) $(ARGS)

## make evidence    what is recorded, and what is missing
.PHONY: evidence
evidence: setup
	$(PY) -m evidence.lab.record $(ARGS)

## make reset       a notebook (NOTEBOOK=04) or a homework's stub (HW=hw03) as the course has it; yours is kept aside
.PHONY: reset
reset: setup
	$(if $(value NOTEBOOK),$(PY) -m course.work --reset $(call quoted,NOTEBOOK))
	$(if $(value HW),$(PY) -m homework.reset $(call quoted,HW) $(ARGS))

## make grade       grade your own file, or another, in isolation (HW=hw03, and FILE=submission.py)
.PHONY: grade
grade: setup
	$(PY) -m homework.grade $(call quoted,HW) $(if $(value FILE),$(call quoted,FILE)) $(ARGS)

## make gradescope  the autograder zip of a homework (HW=hw03)
.PHONY: gradescope
gradescope: setup
	$(PY) -m homework.gradescope $(call quoted,HW) $(ARGS)

## make slides      the decks as offline HTML and PDF (needs EXTRAS=site)
.PHONY: slides
slides: setup
	$(PY) slides/site.py --decks $(ARGS)

## make site        the course site under build/site (EXTRAS=site adds decks; ARGS="--profile smoke": quick)
.PHONY: site
site: setup
	$(PY) slides/site.py $(ARGS)

## make pdf         the whole course as one PDF, build/course.pdf, from the site (needs a Chromium; ARGS as for make site)
.PHONY: pdf chromium
pdf: chromium site
	$(PY) -m slides.book
chromium: setup
	@$(PY) -c 'import sys; from course import doctor; doctor.browser() or sys.exit("pdf: wanted a Chromium, found none: make doctor says more")'

## make read        notebooks, executed, as Markdown that every forge shows: notebooks/read/ (ARGS="04": these)
.PHONY: read
read: setup
	$(PY) -m slides.read $(ARGS)

## make figures     redraw the pictures that pages and slides show, and renew their alt texts there
.PHONY: figures
figures: setup
	$(PY) -m course.drawings $(ARGS)
	$(PY) -m evidence.lab.marks --draw
	MINIMAL_FIGURES=slides/figures $(PY) notebooks/run.py --profile smoke questions
	$(PY) -m evidence.lab.marks

## make clean       remove build/ and caches; .venv, runs/ and your work stay
clean:
	rm -rf build .pytest_cache *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
