"""``caesura bench networks``: how near to the MAC peak networks run as PyTorch exports and onnxruntime quantises them.

A row is measured on a model that was compiled without fallback; one that is refused says by which operators. Its cycles
are those of the run, and those of steps on the CPU before and behind it: the machine waits for these too. Outputs equal
onnxruntime's, or every operator is within its contract on the inputs that it had. Each network is compiled cold.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median

from benchmarks.cold_compile import ColdCompilation, compile_cold
from benchmarks.figures import Figure, Measured, Target
from benchmarks.lab import Lab, Run
from benchmarks.utilisation import run_detail
from compiler import CompileError
from hw.contract.params import SocParams
from sw.driver import DriverError
from sw.runtime import RunStats

#: What networks must and should reach, in percent of the MAC peak.
TARGETS = {
    "mobilenet_v3_large": (54, 62),
    "efficientnet_b0": (62, 72),
    "regnet_y_400mf": (76, 84),
    "mnasnet1_0": (73, 82),
    "shufflenet_v2_x1_0": (45, 58),
    "densenet121": (70, 82),
    "ssdlite320": (70, 80),
    "yolov8n": (80, 90),
    "lraspp": (55, 70),
    "deeplab_v3": (60, 75),
    "unet_transposed": (70, 88),
    "unet_nearest": (75, 90),
    "convnext_tiny": (76, 82),
    "swin_t": (60, 72),
    "vit_b_16": (80, 88),
    "mobilevit_s": (55, 70),
    "whisper_tiny_encoder": (85, 90),
    "tcn_24": (45, 60),
    "tcn_64": (80, 88),
    "pointnet": (75, 85),
    "espcn": (80, 88),
}
#: Models of torchvision that must be accepted. Those of TARGETS that it has, and these.
TORCHVISION = (
    *("alexnet", "vgg16", "googlenet", "inception_v3", "squeezenet", "mobilenetv2", "resnet18", "resnet50"),
    *("wide_resnet50_2", "resnext50_32x4d", "efficientnet_v2_s", "mobilenet_v3_small", "regnet_x_400mf"),
    *list(TARGETS)[:7], "lraspp", "deeplab_v3", "convnext_tiny", "swin_t", "vit_b_16",
)  # fmt: skip
#: Those of TARGETS that take at most some 1.5 million cycles, of all kinds: the RTL simulates them in minutes.
AGAINST_RTL = (
    *("mobilenet_v3_large", "efficientnet_b0", "regnet_y_400mf", "mnasnet1_0", "shufflenet_v2_x1_0", "lraspp"),
    *("tcn_24", "tcn_64", "pointnet"),
)  # fmt: skip

Compile = Callable[[str, SocParams], ColdCompilation]


def figures() -> list[Figure]:
    """Return all rows, in the order of the report."""
    measured = Networks()
    return [
        *(Figure(name, Target(*target), partial(measured.of_peak, name=name)) for name, target in TARGETS.items()),
        Figure("accepted", Target(24, 25, "models"), measured.accepted),
        Figure("slowest_compile", Target(40, 20, "s", at_most=True), measured.slowest_compile),
        Figure("fast_model_against_rtl", Target(1.5, 1, "%", at_most=True), measured.against_rtl, optional=True),
        Figure("fast_model_median", Target(0.1, 0.08, "%", at_most=True), measured.against_rtl_median, optional=True),
    ]


class Networks:
    """Compiles and runs networks, each once for one lab, on ``base`` or whatever hardware the lab has."""

    def __init__(
        self,
        torchvision: Sequence[str] = TORCHVISION,
        others: Iterable[str] = TARGETS,
        compiling: Compile = compile_cold,
    ) -> None:
        self._torchvision, self._compile = torchvision, compiling
        self._names = list(dict.fromkeys((*torchvision, *others)))
        self._compiled: dict[tuple[Lab, str], ColdCompilation] = {}
        self._runs: dict[tuple[Lab, str], Run] = {}
        self._beside: dict[Lab, dict[str, dict[str, Run]]] = {}  # by name and backend

    def of_peak(self, lab: Lab, name: str) -> Measured:
        """Return the utilisation of the MAC peak of all engines in percent, and what the rest was lost to."""
        run = self._run(lab, name)
        cycles = waited(run.stats)
        detail = run_detail(run)
        detail["parts"]["cpu"] = cycles - run.stats.cycles
        lost = {part: round(100 * count / cycles, 1) for part, count in detail["parts"].items() if part != "peak"}
        compiled = self._compiled[lab, name]
        detail |= {
            "cycles": cycles, "on_the_cpu": sorted({step.reason for step in run.stats.on_cpu}), "lost": lost,
            "compile_seconds": round(compiled.seconds, 1), "compile_megabytes": compiled.megabytes,
        }  # fmt: skip
        return Measured(100 * run.stats.macs / (run.image.params.macs * cycles), run.correct, detail)

    def accepted(self, lab: Lab) -> Measured:
        """Return how many models of torchvision compile without fallback and have right outputs."""
        refused = {}
        for name in self._torchvision:
            try:
                run = self._run(lab, name)
                if not run.correct:
                    refused[name] = run.verdict
            except (CompileError, DriverError) as error:
                refused[name] = str(error)
        told = "; ".join(f"{name}: {why}" for name, why in refused.items())
        count = len(self._torchvision) - len(refused)
        return Measured(count, True, {"explanation": told, "refused": refused, "of": len(self._torchvision)})

    def slowest_compile(self, lab: Lab) -> Measured:
        """Return the CPU seconds of the longest compilation of all networks; refusals count with what they took."""
        seconds = {name: round(self._cold(lab, name).seconds, 1) for name in self._names}
        worst = max(seconds, key=lambda name: seconds[name])
        return Measured(seconds[worst], True, {"worst": worst, "seconds": seconds})

    def against_rtl(self, lab: Lab) -> Measured:
        """Return the largest difference between the cycles of the fast model and those of the RTL, in percent. Outputs
        of both must be right."""
        apart, correct, cycles = self._beside_rtl(lab)
        worst = max(apart, key=lambda name: abs(apart[name]))
        return Measured(abs(apart[worst]), correct, {"worst": worst, "apart": apart, "cycles": cycles})

    def against_rtl_median(self, lab: Lab) -> Measured:
        """Return the median of the same differences."""
        apart, correct, _ = self._beside_rtl(lab)
        return Measured(median(abs(value) for value in apart.values()), correct, {"apart": apart})

    def _beside_rtl(self, lab: Lab) -> tuple[dict[str, float], bool, dict[str, dict[str, int]]]:
        """Return by how much the fast model's cycles differ from the RTL's, network by network, in percent; whether all
        outputs are right; and the cycles of both."""
        if lab not in self._beside:
            self._beside[lab] = {name: self._on_both(lab, name) for name in AGAINST_RTL}
        runs = self._beside[lab]
        cycles = {name: {backend: run.stats.cycles for backend, run in of.items()} for name, of in runs.items()}
        apart = {name: round(100 * (of["model"] / of["native"] - 1), 2) for name, of in cycles.items()}
        return apart, all(run.correct for of in runs.values() for run in of.values()), cycles

    def _on_both(self, lab: Lab, name: str) -> dict[str, Run]:
        """Return the network's runs by backend, each the first on its device: so both meet refreshes of the DRAM at the
        same moments."""
        found, image = {}, self._cold(lab, name).image()
        for backend in ("model", "native"):
            with Lab(lab.params, backend, lab.progress) as other:
                found[backend] = other.run_image(name, image, within_contracts=True)
        return found

    def _cold(self, lab: Lab, name: str) -> ColdCompilation:
        if (lab, name) not in self._compiled:
            lab.progress.task(f"{name}: compiling")
            self._compiled[lab, name] = self._compile(name, lab.params)
        return self._compiled[lab, name]

    def _run(self, lab: Lab, name: str) -> Run:
        """Raises :class:`CompileError` if the network is refused."""
        if (lab, name) not in self._runs:
            image = self._cold(lab, name).image()
            self._runs[lab, name] = lab.run_image(name, image, within_contracts=True)
        return self._runs[lab, name]


def waited(stats: RunStats) -> int:
    """Return the cycles of a run, and those of steps on the CPU before its first job and behind its last."""
    first = min((job.prologue_start or job.start for job in stats.jobs), default=0)
    last = max((job.end for job in stats.jobs), default=0)
    return stats.cycles + sum(step.end - step.begin for step in stats.on_cpu if step.end <= first or step.begin >= last)
