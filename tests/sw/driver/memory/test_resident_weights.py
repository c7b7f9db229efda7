import random

from sw.driver.memory.resident_weights import ResidentWeights


def test_what_was_put_is_held_for_the_same_tenant_until_somebody_writes_there():
    weights = ResidentWeights()
    weights.put((10, 20), "a", b"x")
    assert weights.holds((10, 20), "a", b"x")
    assert not weights.holds((10, 20), None, b"x")
    assert not weights.holds((10, 20), "a", b"y")
    assert not weights.holds((10, 19), "a", b"x")
    weights.enter([(0, 100)], "a", {(10, 20): b"x"})
    assert weights.holds((10, 20), "a", b"x")
    weights.enter([(0, 100)], "b", {(10, 20): b"x"})
    assert not weights.holds((10, 20), "a", b"x") and not weights.holds((10, 20), "b", b"x")


def test_random_uses_never_hold_what_a_table_of_bytes_does_not():
    held = 0
    for seed in range(300):
        rng = random.Random(seed)
        weights, table = ResidentWeights(), [("nobody", b"")] * 32
        for _ in range(15):
            low, high = sorted(rng.sample(range(33), 2))
            tenant, digest = rng.choice("ab"), rng.choice([b"x", b"y"])
            kind = rng.choice(["put", "put", "enter", "overwritten"])
            own = {(low, (low + high + 1) // 2): digest} if kind == "enter" else {}
            if kind == "put":
                weights.put((low, high), tenant, digest)
            elif kind == "enter":
                weights.enter([(low, high)], tenant, own)
            else:
                weights.overwritten([(low, high)])
            for byte in range(low, high):
                mine = any(start <= byte < end for start, end in own)
                if kind != "put" and not (mine and table[byte] == (tenant, digest, *next(iter(own)))):
                    table[byte] = ("unknown", b"")
                elif kind == "put":
                    table[byte] = (tenant, digest, low, high)
            for start in range(32):
                for end in range(start + 1, 33):
                    for who in "ab":
                        for what in (b"x", b"y"):
                            if weights.holds((start, end), who, what):
                                held += 1
                                assert table[start:end] == [(who, what, start, end)] * (end - start), f"seed {seed}"
    assert held > 300
