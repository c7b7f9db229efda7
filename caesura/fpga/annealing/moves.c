/* Moves of cells to other places, by the rules of a tile of logic: they are made, judged, and taken back. */
#include "core.h"

enum { LONGEST = 8, REACH = 7 }; /* tiles of a chain that is moved; from where cells that make room for one may go */
enum { LEFT = 2 * HALVES };      /* cells of a tile */

static void set(core_t *core, i32 *where, i32 value) {
    core->changes[core->changed++] = (change_t){where, *where};
    *where = value;
}

static void take_back(core_t *core) {
    while (core->changed) {
        change_t change = core->changes[--core->changed];
        *change.where = change.old;
    }
}

static void begin(core_t *core) {
    core->number++;
    core->changed = core->count = 0;
}

/* Puts a cell (NONE: nothing) where `slot` is, which is of `half` of `tile`. */
static void put(core_t *core, i32 *slot, i32 tile, i32 half, i32 cell) {
    design_t *d = &core->d;
    set(core, slot, cell);
    if (cell < 0)
        return;
    if (core->seen_cell[cell] != core->number) {
        core->seen_cell[cell] = core->number;
        core->old_column[core->count] = d->column[cell];
        core->old_row[core->count] = d->row[cell];
        core->moved[core->count++] = cell;
    }
    set(core, &d->column[cell], tile % (i32)d->width);
    set(core, &d->row[cell], tile / (i32)d->width);
    set(core, &d->half[cell], half);
}

static i32 *slot(const core_t *core, int reg, i32 tile, i32 half) {
    return (reg ? core->d.reg : core->d.table) + tile * HALVES + half;
}

static void swap(core_t *core, int reg, i32 tile, i32 half, i32 other, i32 other_half) {
    i32 *one = slot(core, reg, tile, half), *two = slot(core, reg, other, other_half), cell = *one;
    put(core, one, tile, half, *two);
    put(core, two, other, other_half, cell);
}

static int is(const core_t *core, i32 cell, i32 kinds) { return cell >= 0 && core->d.kind[cell] & kinds; }

/* Both registers of a slice are enabled alike, and none takes an input that a table beside it selects by. */
static int slice_holds(const core_t *core, i32 tile, i32 slice) {
    i32 *regs = slot(core, 1, tile, 2 * slice), *tables = slot(core, 0, tile, 2 * slice);
    if (regs[0] >= 0 && regs[1] >= 0 && core->d.slice_key[regs[0]] != core->d.slice_key[regs[1]])
        return 0;
    for (int half = 0; half < 2; half++)
        if (is(core, regs[half], PASSED_BY) && is(core, tables[half], SELECTS))
            return 0;
    return 1;
}

/* All registers of a tile have one clock and one reset. */
static int tile_holds(const core_t *core, i32 tile) {
    i32 key = NONE;
    for (i32 half = 0; half < HALVES; half++) {
        i32 reg = *slot(core, 1, tile, half);
        if (reg < 0)
            continue;
        if (key != NONE && core->d.tile_key[reg] != key)
            return 0;
        key = core->d.tile_key[reg];
    }
    return 1;
}

static int holds(const core_t *core, i32 tile, i32 slice) {
    return slice_holds(core, tile, slice) && tile_holds(core, tile);
}

static int finish(core_t *core, int allowed) {
    if (allowed && accepted(core))
        return 1;
    take_back(core);
    return 0;
}

/* Swaps the table, the register or both of two halves. */
static int swap_halves(core_t *core, i32 cell, i32 tile, i32 half, i32 other, i32 other_half, int whole) {
    int reg = is(core, cell, REGISTER);
    i32 mine = *slot(core, 0, tile, half), theirs = *slot(core, reg, other, other_half);
    i32 table = *slot(core, 0, other, other_half);
    whole |= is(core, cell, TIED) || is(core, theirs, TIED) || (!reg && theirs != NONE && !is(core, theirs, PLAIN));
    if (theirs == FIXED || (whole && (*slot(core, !reg, other, other_half) == FIXED ||
                                      (mine != NONE && !is(core, mine, PLAIN)) ||
                                      (table != NONE && !is(core, table, PLAIN)))))
        return 0;
    begin(core);
    if (whole || !reg)
        swap(core, 0, tile, half, other, other_half);
    if (whole || reg)
        swap(core, 1, tile, half, other, other_half);
    return finish(core, holds(core, tile, half / 2) && holds(core, other, other_half / 2));
}

static int swap_slices(core_t *core, i32 tile, i32 slice, i32 other, i32 other_slice) {
    for (i32 half = 0; half < 2; half++)
        for (int reg = 0; reg < 2; reg++) {
            i32 one = *slot(core, reg, tile, 2 * slice + half), two = *slot(core, reg, other, 2 * other_slice + half);
            if (one == FIXED || two == FIXED || is(core, one, TOGETHER) || is(core, two, TOGETHER))
                return 0;
        }
    begin(core);
    for (i32 half = 0; half < 2; half++)
        for (int reg = 0; reg < 2; reg++)
            swap(core, reg, tile, 2 * slice + half, other, 2 * other_slice + half);
    return finish(core, tile_holds(core, tile) && tile_holds(core, other));
}

static int moves(const core_t *core, i32 tile) {
    for (i32 half = 0; half < HALVES; half++)
        if (*slot(core, 0, tile, half) == FIXED || *slot(core, 1, tile, half) == FIXED)
            return 0;
    return core->d.logic[tile];
}

static void put_writer(core_t *core, i32 tile, i32 writer) {
    put(core, &core->d.writer[tile], tile, HALVES / 2, writer);
}

/* Swaps tiles in a row with as many others, and all that is in them. */
static int swap_tiles(core_t *core, i32 tile, i32 other, i32 length) {
    design_t *d = &core->d;
    for (i32 at = 0; at < length; at++)
        if (!moves(core, tile + at) || !moves(core, other + at))
            return 0;
    begin(core);
    for (i32 at = 0; at < length; at++) {
        i32 one = tile + at, two = other + at, writer = d->writer[one], goes_on = d->goes_on[one];
        put_writer(core, one, d->writer[two]);
        put_writer(core, two, writer);
        set(core, &d->goes_on[one], d->goes_on[two]);
        set(core, &d->goes_on[two], goes_on);
        for (i32 half = 0; half < HALVES; half++)
            for (int reg = 0; reg < 2; reg++)
                swap(core, reg, one, half, two, half);
    }
    return finish(core, 1);
}

/* What makes room: tables and registers (NONE: none) of a half, or of both of a slice where they are joined. */
typedef struct {
    i32 halves, table[2], reg[2];
} unit_t;

/* Whether a unit has room in a tile from `half` on. */
static int has_room(core_t *core, i32 tile, i32 half, const unit_t *unit) {
    i32 *tables = slot(core, 0, tile, half), *regs = slot(core, 1, tile, half), old[2];
    for (i32 at = 0; at < unit->halves; at++)
        if ((unit->table[at] >= 0 && tables[at] != NONE) || (unit->reg[at] >= 0 && regs[at] != NONE))
            return 0;
    for (i32 at = 0; at < unit->halves; at++) {
        old[at] = regs[at];
        regs[at] = unit->reg[at] >= 0 ? unit->reg[at] : regs[at];
    }
    int room = holds(core, tile, half / 2);
    for (i32 at = 0; at < unit->halves; at++) {
        room &= !(unit->halves == 2 && is(core, unit->table[at], SELECTS) && is(core, regs[at], PASSED_BY));
        regs[at] = old[at];
    }
    return room;
}

/* Puts a unit into the nearest place with room for it, which is none of `length` tiles from `tile` on. Returns 0 if there
 * is none. */
static int put_near(core_t *core, i32 tile, i32 length, i32 from, const unit_t *unit) {
    i32 width = (i32)core->d.width, column = from % width, row = from / width;
    for (i32 reach = 0; reach <= REACH; reach++)
        for (i32 y = greater(row - reach, 0); y <= lesser(row + reach, (i32)core->d.height - 1); y++)
            for (i32 x = greater(column - reach, 0); x <= lesser(column + reach, width - 1); x++) {
                i32 near = y * width + x;
                if (greater(abs(x - column), abs(y - row)) != reach || !core->d.logic[near] ||
                    (near >= tile && near < tile + length))
                    continue;
                for (i32 half = 0; half < HALVES; half += unit->halves) {
                    if (!has_room(core, near, half, unit))
                        continue;
                    for (i32 at = 0; at < unit->halves; at++) {
                        if (unit->table[at] >= 0)
                            put(core, slot(core, 0, near, half + at), near, half + at, unit->table[at]);
                        if (unit->reg[at] >= 0)
                            put(core, slot(core, 1, near, half + at), near, half + at, unit->reg[at]);
                    }
                    return 1;
                }
            }
    return 0;
}

/* Takes what makes room out of a slice to which tables and registers of another come, and adds it to `units`. */
static i32 clear(core_t *core, i32 from, i32 to, i32 slice, unit_t *units) {
    i32 *tables = slot(core, 0, to, 2 * slice), *regs = slot(core, 1, to, 2 * slice), out = 0;
    unit_t unit = {2, {NONE, NONE}, {NONE, NONE}};
    int comes = 0, joined = 0;
    for (i32 half = 0; half < 2; half++) {
        comes |= is(core, *slot(core, 0, from, 2 * slice + half), TOGETHER);
        joined |= tables[half] >= 0 && !is(core, tables[half], PLAIN);
    }
    for (i32 half = 0; half < 2; half++) {
        int reg = is(core, *slot(core, 1, from, 2 * slice + half), TIED);
        if (!comes || (!joined && !is(core, *slot(core, 0, from, 2 * slice + half), TOGETHER)))
            continue;
        unit.table[half] = tables[half];
        if (regs[half] >= 0 && (reg || is(core, tables[half], TIED)))
            unit.reg[half] = regs[half];
        if (tables[half] >= 0)
            set(core, &tables[half], NONE);
        if (unit.reg[half] >= 0)
            set(core, &regs[half], NONE);
        if (!joined && (unit.table[half] >= 0 || unit.reg[half] >= 0))
            units[out++] = (unit_t){1, {unit.table[half]}, {unit.reg[half]}};
    }
    if (joined && comes)
        units[out++] = unit;
    return out;
}

/* Moves a chain, or what else belongs together in a tile, to tiles where only cells are that can make room, to near
 * them. */
static int shove(core_t *core, i32 tile, i32 other, i32 length) {
    design_t *d = &core->d;
    unit_t units[LONGEST * HALVES];
    i32 out = 0;
    for (i32 at = 0; at < length; at++) {
        if (!moves(core, other + at))
            return 0;
        for (i32 half = 0; half < HALVES; half++)
            if (is(core, *slot(core, 0, other + at, half), TOGETHER))
                return 0;
    }
    begin(core);
    for (i32 at = 0; at < length; at++) {
        i32 one = tile + at, two = other + at;
        put_writer(core, two, d->writer[one]);
        set(core, &d->writer[one], NONE);
        set(core, &d->goes_on[two], d->goes_on[one]);
        set(core, &d->goes_on[one], 0);
        for (i32 slice = 0; slice < HALVES / 2; slice++)
            out += clear(core, one, two, slice, units + out);
        for (i32 half = 0; half < HALVES; half++) {
            i32 *from = slot(core, 0, one, half), *from_reg = slot(core, 1, one, half), table = *from, reg = *from_reg;
            if (!is(core, table, TOGETHER))
                continue;
            set(core, from, NONE);
            put(core, slot(core, 0, two, half), two, half, table);
            if (is(core, reg, TIED)) {
                set(core, from_reg, NONE);
                put(core, slot(core, 1, two, half), two, half, reg);
            }
        }
    }
    int allowed = 1;
    for (i32 at = 0; allowed && at < length; at++)
        for (i32 slice = 0; slice < HALVES / 2; slice++)
            allowed &= holds(core, other + at, slice);
    for (i32 place = 0; allowed && place < out; place++)
        allowed = put_near(core, other, length, other + place * length / out, &units[place]);
    return finish(core, allowed);
}

/* Moves the chain that runs through a tile, or the tile alone, to where its first tile comes to lie at `other` less what
 * lies ahead of it. */
static int move_tiles(core_t *core, i32 tile, i32 other, int alone) {
    const design_t *d = &core->d;
    i32 width = (i32)d->width, first = tile, last = tile;
    while (first % width && d->goes_on[first - 1])
        first--;
    while (d->goes_on[last])
        last++;
    i32 length = last - first + 1, column = other % width - (tile - first), to = other - (tile - first);
    if (length > LONGEST || column < 0 || column + length > width || abs(to - first) < length)
        return 0;
    if ((column && d->goes_on[to - 1]) || d->goes_on[to + length - 1])
        return 0;
    return alone ? shove(core, first, to, length) : swap_tiles(core, first, to, length);
}

/* A tile to move a cell to, maybe its own: near one that it is joined to, half the way there, or near itself. NONE: no
 * logic is there. */
static i32 goal(core_t *core, i32 cell, i32 range) {
    const design_t *d = &core->d;
    i32 column = d->column[cell], row = d->row[cell], x = column, y = row, nets = d->net_first[cell + 1] - d->net_first[cell];
    if (nets && below(core, 4)) {
        i32 net = d->net[d->net_first[cell] + below(core, nets)], sinks = d->pin_first[net + 1] - d->pin_first[net];
        if (d->driver[net] >= 0 && sinks <= LARGE) {
            i32 pin = below(core, sinks + 1), joined = pin == sinks ? d->driver[net] : d->cell[d->pin_first[net] + pin];
            range = 2;
            x = d->column[joined];
            y = d->row[joined];
            if (below(core, 2)) {
                x = (x + column) / 2;
                y = (y + row) / 2;
            }
        }
    }
    x += below(core, 2 * range + 1) - range;
    y += below(core, 2 * range + 1) - range;
    if (x < 0 || y < 0 || x >= d->width || y >= d->height)
        return NONE;
    i32 tile = y * (i32)d->width + x;
    return d->logic[tile] ? tile : NONE;
}

/* Tries a move of a cell, and returns whether it was made. */
int step(core_t *core, i32 cell, i32 range) {
    enum { TILES = 3, SLICES = 12, WHOLE = 30, ALL = 100 }; /* of a hundred moves */
    i32 tile = tile_of(core, cell), half = core->d.half[cell], kind = below(core, ALL);
    int together = is(core, cell, TOGETHER), plain = is(core, cell, REGISTER | PLAIN);
    i32 other = goal(core, cell, together && below(core, 2) ? 4 : range), other_half = below(core, HALVES);
    if (other == NONE || (tile == other && half / 2 == other_half / 2 && (!plain || half == other_half)))
        return 0;
    if (together || kind < TILES)
        return tile != other && move_tiles(core, tile, other, together && below(core, 2));
    if (!plain || (kind < SLICES && (tile != other || half / 2 != other_half / 2)))
        return swap_slices(core, tile, half / 2, other, other_half / 2);
    return swap_halves(core, cell, tile, half, other, other_half, kind < WHOLE);
}
