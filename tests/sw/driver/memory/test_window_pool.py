"""Whose data and whose weights lie in LV2."""

import random

import pytest

from sw.driver.memory.allocator import WindowPool


def test_what_was_there_at_the_start_is_the_default_tenants():
    tenants = WindowPool(100)
    assert tenants.foreign([(10, 60)], "a") == [(10, 60)]
    assert tenants.foreign([(10, 60)], None) == []


def test_what_several_may_have_left_is_nobodys():
    tenants = WindowPool(100, several=True)
    assert tenants.foreign([(10, 60)], "a") == tenants.foreign([(10, 60)], None) == [(10, 60)]
    tenants.use([(20, 30)], None)
    assert tenants.foreign([(10, 60)], None) == [(10, 20), (30, 60)]


def test_kept_bytes_are_not_foreign():
    tenants = WindowPool(100)
    tenants.use([(0, 100)], None)
    assert tenants.foreign([(50, 200)], None) == []
    assert tenants.foreign([(50, 100)], "a", kept=[(60, 70)]) == [(50, 60), (70, 100)]


def test_what_passes_through_another_tenants_bytes_makes_them_nobodys():
    tenants = WindowPool(100)
    tenants.use([(0, 50)], "a")
    tenants.use([(50, 100)], "b")
    tenants.pass_through([(40, 60)], {"b"})
    assert tenants.foreign([(0, 100)], "a") == [(40, 100)]
    assert tenants.foreign([(0, 100)], "b") == [(0, 50)]
    tenants.pass_through([(90, 95)], {"a", "b"})
    assert tenants.foreign([(80, 100)], "b") == [(90, 95)]
    assert tenants.foreign([(90, 95)], "a") == [(90, 95)]


def test_random_uses_equal_a_table_of_bytes():
    for seed in range(200):
        rng = random.Random(seed)
        tenants = WindowPool(40)
        table: list[set[str | None]] = [{None} for _ in range(40)]
        for _ in range(12):
            where = sorted(rng.sample(range(41), 2)), sorted(rng.sample(range(41), 2))
            ranges = [(low, high) for low, high in where]
            users = set(rng.sample(["a", "b", None], rng.randint(1, 2)))
            through = len(users) > 1 or rng.random() < 0.4
            for byte in {byte for low, high in ranges for byte in range(low, high)}:
                table[byte] = table[byte] | users if through else set(users)
            if through:
                tenants.pass_through(ranges, users)
            else:
                tenants.use(ranges, *users)
            for user in ("a", "b", None):
                foreign = {byte for low, high in tenants.foreign([(0, 40)], user) for byte in range(low, high)}
                assert foreign == {i for i, mine in enumerate(table) if mine - {user}}, f"seed {seed}"


def test_what_was_put_is_there_for_the_same_tenant_until_somebody_writes_there():
    pool = WindowPool(100)
    pool.put((10, 20), "a", b"x")
    assert not pool.has_weights((10, 20), "a", b"x")  # the bytes are not its own
    pool.use([(0, 100)], "a")
    pool.put((10, 20), "a", b"x")
    assert pool.has_weights((10, 20), "a", b"x")
    assert not pool.has_weights((10, 20), None, b"x")
    assert not pool.has_weights((10, 20), "a", b"y")
    assert not pool.has_weights((10, 19), "a", b"x")
    pool.use([(0, 100)], "a", {(10, 20): b"x"})
    assert pool.has_weights((10, 20), "a", b"x")
    pool.overwritten([(0, 10), (20, 30)])
    assert pool.has_weights((10, 20), "a", b"x")
    pool.use([(0, 100)], "b", {(10, 20): b"x"})
    assert not pool.has_weights((10, 20), "a", b"x") and not pool.has_weights((10, 20), "b", b"x")
    pool.put((10, 20), "b", b"x")
    pool.pass_through([(19, 25)], {"b"})
    assert not pool.has_weights((10, 20), "b", b"x") and not pool.foreign([(0, 100)], "b")


@pytest.mark.slow
def test_random_uses_never_claim_weights_that_a_table_of_bytes_does_not():
    there = 0
    for seed in range(80):
        rng = random.Random(seed)
        pool, table = WindowPool(32), [(None, b"")] * 32
        for _ in range(25):
            low, high = sorted(rng.sample(range(33), 2))
            tenant, digest = rng.choice("ab"), rng.choice([b"x", b"y"])
            kind = rng.choice(["put", "put", "put", "use", "use", "overwritten", "through"])
            own = {(low, (low + high + 1) // 2): digest} if kind == "use" else {}
            theirs = any(table[byte][0] != tenant for byte in range(low, high))
            if kind == "put":
                pool.put((low, high), tenant, digest)
            elif kind == "use":
                pool.use([(low, high)], tenant, own)
            elif kind == "through":
                pool.pass_through([(low, high)], {tenant})
            else:
                pool.overwritten([(low, high)])
            for byte in range(low, high):
                user = table[byte][0]
                mine = any(start <= byte < end for start, end in own)
                if kind == "put" and not theirs:
                    table[byte] = (tenant, digest, low, high)
                elif kind == "use" and not (mine and table[byte] == (tenant, digest, *next(iter(own)))):
                    table[byte] = (tenant, b"")
                elif kind == "overwritten":
                    table[byte] = (user, b"")
                elif kind == "through":
                    table[byte] = (user if user == tenant else "several", b"")
            for start in range(32):
                for end in range(start + 1, 33):
                    for who in "ab":
                        for what in (b"x", b"y"):
                            if pool.has_weights((start, end), who, what):
                                there += 1
                                assert table[start:end] == [(who, what, start, end)] * (end - start), f"seed {seed}"
            for who in ("a", "b", None):
                foreign = {byte for low, high in pool.foreign([(0, 32)], who) for byte in range(low, high)}
                assert foreign == {i for i, entry in enumerate(table) if entry[0] != who}, f"seed {seed}"
    assert there > 60


def test_it_gives_bytes_away_and_takes_them_back():
    pool = WindowPool(100)
    first = pool.allocate(60, 1, "a model")
    assert pool.free_bytes == 40 and pool.holds(first)
    pool.free(first)
    assert pool.free_bytes == 100
