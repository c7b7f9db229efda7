"""Benchmarks of Caesura: their workloads, and the runs that measure them."""

#: What ``caesura bench`` can measure: modules of this package with a function ``figures``.
BENCHES = (
    "utilisation",
    "preemption",
    "simspeed",
    "scheduling",
    "tenants",
    "loads",
    "accuracy",
    "modelspeed",
    "order",
    "kernels",
    "attention",
    "networks",
    "language",
    "memory",
    "everyday",
)
#: Backends of benches that take another than the usual one unless they are told: many networks on the RTL take hours.
USUAL_BACKENDS = {"memory": "model", "networks": "model"}
