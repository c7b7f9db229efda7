import random

from sw.driver.memory.lv2_tenants import Lv2Tenants


def test_what_was_there_at_the_start_is_the_default_tenants():
    tenants = Lv2Tenants(100)
    assert tenants.foreign([(10, 60)], "a") == [(10, 60)]
    assert tenants.foreign([(10, 60)], None) == []


def test_what_several_may_have_left_is_nobodys():
    tenants = Lv2Tenants(100, several=True)
    assert tenants.foreign([(10, 60)], "a") == tenants.foreign([(10, 60)], None) == [(10, 60)]
    tenants.use([(20, 30)], None)
    assert tenants.foreign([(10, 60)], None) == [(10, 20), (30, 60)]


def test_kept_bytes_are_not_foreign():
    tenants = Lv2Tenants(100)
    tenants.use([(0, 100)], None)
    assert tenants.foreign([(50, 200)], None) == []
    assert tenants.foreign([(50, 100)], "a", kept=[(60, 70)]) == [(50, 60), (70, 100)]


def test_what_passes_through_another_tenants_bytes_makes_them_nobodys():
    tenants = Lv2Tenants(100)
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
        tenants = Lv2Tenants(40)
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
