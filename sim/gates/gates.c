// Simulates a netlist of cells with one clock, cell by cell: a cell is looked at only when one of its inputs changed.
//
// Nodes are numbered look-up tables first, then products, reads of distributed RAM, flip-flops, writes of distributed
// RAM, block RAMs. Those before the flip-flops are combinational and have a level; the others wait for the clock edge.

#include <stdint.h>

enum { INPUTS = 5, FACTOR = 18, PRODUCT_IN = 38, PRODUCT_OUT = 36, SHALLOW_WIDTH = 4, SHALLOW_BITS = 64 };
// Of a block RAM: two ports of 14 address bits, data in, write enable and clock enable; data out of both.
enum { DEEP_ADDRESS = 14, DEEP_DATA = 18, DEEP_PORT = 34, DEEP_IN = 2 * DEEP_PORT, DEEP_OUT = 36, DEEP_BITS = 18432 };

typedef struct {
  int64_t luts, products, reads, flops, writes, deeps, levels;
  uint8_t *value;             // of each net
  int32_t *fan_start, *fan;   // nodes that read each net
  int32_t *level, *bucket_start, *bucket, *filled;
  uint8_t *queued;
  int32_t *edge, *edge_next;  // nodes that wait for the clock edge
  int64_t *waiting;           // how many wait
  int32_t *lut_in, *lut_out;
  uint32_t *lut_table;
  int32_t *product_in, *product_out;
  int32_t *read_in, *read_out;
  uint8_t *shallow;           // contents of distributed RAM
  int32_t *flop_in, *flop_out; // DI, CE, LSR
  uint8_t *flop_kind;         // 1: CE inverted, 2: clock enable goes before set and reset, 4: set
  int32_t *write_in;          // WRE, WAD, DI
  int32_t *deep_in, *deep_out;
  uint8_t *deep_width;        // bits of a word, both ports
  uint8_t *deep_through;      // 1: a read of a word that its own port writes gives nothing new
  uint8_t *deep;
  int32_t *changed;           // nets that a clock edge changes
} Gates;

typedef struct {
  int64_t divisor, send_left, send_timer, send_bits, receive_left, receive_timer, receive_byte;
} Line;

static int64_t combinational(const Gates *g) { return g->luts + g->products + g->reads; }

static void push(Gates *g, int32_t node) {
  if (g->queued[node]) return;
  g->queued[node] = 1;
  if (node < combinational(g)) {
    int32_t level = g->level[node];
    g->bucket[g->bucket_start[level] + g->filled[level]++] = node;
  } else {
    g->edge[(*g->waiting)++] = node;
  }
}

void gates_put(Gates *g, int32_t net, uint8_t value) {
  if (g->value[net] == value) return;
  g->value[net] = value;
  for (int32_t i = g->fan_start[net]; i < g->fan_start[net + 1]; i++) push(g, g->fan[i]);
}

static uint32_t number(const Gates *g, const int32_t *nets, int width) {
  uint32_t result = 0;
  for (int i = 0; i < width; i++) result |= (uint32_t)g->value[nets[i]] << i;
  return result;
}

static int64_t factor(const Gates *g, const int32_t *nets, int is_signed) {
  int64_t value = number(g, nets, FACTOR);
  return is_signed && value >> (FACTOR - 1) ? value - (1 << FACTOR) : value;
}

static void multiply(Gates *g, int64_t i) {
  const int32_t *in = g->product_in + PRODUCT_IN * i;
  int64_t a = factor(g, in, g->value[in[2 * FACTOR]]), b = factor(g, in + FACTOR, g->value[in[2 * FACTOR + 1]]);
  for (int bit = 0; bit < PRODUCT_OUT; bit++) gates_put(g, g->product_out[PRODUCT_OUT * i + bit], (a * b >> bit) & 1);
}

void gates_settle(Gates *g) {
  for (int64_t level = 0; level < g->levels; level++) {
    int32_t *nodes = g->bucket + g->bucket_start[level];
    for (int32_t at = 0; at < g->filled[level]; at++) {
      int64_t node = nodes[at];
      g->queued[node] = 0;
      if (node < g->luts) {
        gates_put(g, g->lut_out[node], g->lut_table[node] >> number(g, g->lut_in + INPUTS * node, INPUTS) & 1);
      } else if (node < g->luts + g->products) {
        multiply(g, node - g->luts);
      } else {
        int64_t i = node - g->luts - g->products;
        uint32_t row = number(g, g->read_in + SHALLOW_WIDTH * i, SHALLOW_WIDTH);
        for (int bit = 0; bit < SHALLOW_WIDTH; bit++)
          gates_put(g, g->read_out[SHALLOW_WIDTH * i + bit], g->shallow[SHALLOW_BITS * i + SHALLOW_WIDTH * row + bit]);
      }
    }
    g->filled[level] = 0;
  }
}

// A bit of a block RAM: words of 9 bits and more have every ninth bit, narrower ones leave it out.
static int32_t place(uint32_t address, int width, int bit) {
  if (width < 9) return (address >> 3) * 9 + (address & 7 & ~(uint32_t)(width - 1)) + bit;
  int groups = width / 9;
  return (int32_t)(address >> 3) / groups * groups * 9 + bit;
}

static int64_t change(Gates *g, int64_t count, int32_t net, uint8_t value) {
  if (g->value[net] != value) g->changed[count++] = net;
  return count;
}

static int64_t block_ram(Gates *g, int32_t node, int64_t i, int64_t count) {
  const int32_t *in = g->deep_in + DEEP_IN * i, *out = g->deep_out + DEEP_OUT * i;
  uint8_t *memory = g->deep + DEEP_BITS * i;
  int width = g->deep_width[i], bytes = width < 9 ? 1 : width / 9, wrote = 0;
  uint32_t address[2], enables[2], words[2];
  for (int port = 0; port < 2; port++) {
    const int32_t *own = in + DEEP_PORT * port;
    address[port] = number(g, own, DEEP_ADDRESS);
    int on = g->value[own[DEEP_PORT - 1]], write = on && g->value[own[DEEP_PORT - 2]];
    enables[port] = !write ? 0 : width < 18 ? 1 : address[port] & ((1u << bytes) - 1);
    words[port] = width < 9 ? address[port] / width : (address[port] >> 3) / bytes;
  }
  for (int port = 0; port < 2; port++) {  // words of 36 bits are written by the first port and read by the second
    const int32_t *own = in + DEEP_PORT * port;
    if (!g->value[own[DEEP_PORT - 1]] || (width == 36 && port == 0)) continue;
    if (g->deep_through[i] && enables[port]) continue;
    // What both ports touch in one cycle is not defined: the reader gets the wrong bits.
    int clash = enables[1 - port] && words[0] == words[1];
    for (int bit = 0; bit < width; bit++) {
      uint8_t wrong = clash && (enables[1 - port] >> (width < 18 ? 0 : bit / 9) & 1);
      int32_t net = out[(width == 36 ? 0 : DEEP_DATA * port) + bit];
      count = change(g, count, net, memory[place(address[port], width, bit)] ^ wrong);
    }
  }
  for (int port = 0; port < 2; port++) {
    const int32_t *own = in + DEEP_PORT * port;
    if (!enables[port]) continue;
    wrote = 1;
    for (int bit = 0; bit < width; bit++) {
      int32_t net = bit < DEEP_DATA ? own[DEEP_ADDRESS + bit] : in[DEEP_PORT + DEEP_ADDRESS + bit - DEEP_DATA];
      if (width < 18 || enables[port] >> (bit / 9) & 1) memory[place(address[port], width, bit)] = g->value[net];
    }
  }
  if (wrote) push(g, node);  // what it reads in the next cycle is something else
  return count;
}

void gates_clock(Gates *g) {
  int32_t *nodes = g->edge;
  int64_t waiting = *g->waiting, count = 0, first = combinational(g);
  g->edge = g->edge_next;
  g->edge_next = nodes;
  *g->waiting = 0;
  for (int64_t at = 0; at < waiting; at++) g->queued[nodes[at]] = 0;
  for (int64_t at = 0; at < waiting; at++) {
    int32_t node = nodes[at];
    int64_t i = node - first;
    if (i < g->flops) {
      const int32_t *in = g->flop_in + 3 * i;
      int kind = g->flop_kind[i], on = g->value[in[1]] ^ (kind & 1), reset = g->value[in[2]];
      if (kind & 2 && !on) continue;
      if (reset) count = change(g, count, g->flop_out[i], kind >> 2 & 1);
      else if (on) count = change(g, count, g->flop_out[i], g->value[in[0]]);
    } else if (i < g->flops + g->writes) {
      int64_t ram = i - g->flops;
      const int32_t *in = g->write_in + 9 * ram;
      if (!g->value[in[0]]) continue;
      uint32_t row = number(g, in + 1, SHALLOW_WIDTH);
      for (int bit = 0; bit < SHALLOW_WIDTH; bit++)
        g->shallow[SHALLOW_BITS * ram + SHALLOW_WIDTH * row + bit] = g->value[in[5 + bit]];
      push(g, (int32_t)(g->luts + g->products + ram));
    } else {
      count = block_ram(g, node, i - g->flops - g->writes, count);
    }
  }
  for (int64_t at = 0; at < count; at++) gates_put(g, g->changed[at], !g->value[g->changed[at]]);
}

// Sends `sends` bytes over a line with 8 data bits and one stop bit, and returns how many came back: it ends when all
// are sent, and either `wanted` have come or nothing has happened on the line for `patience` cycles.
int64_t gates_line(Gates *g, Line *line, int32_t rx, int32_t tx, const uint8_t *bytes, int64_t sends, uint8_t *came,
                   int64_t wanted, int64_t room, int64_t patience, int64_t *cycles) {
  int64_t sent = 0, received = 0, silence = 0;
  while (received < room) {
    int busy = line->send_left || sent < sends;
    if (!busy && (received >= wanted || silence >= patience)) break;
    if (line->send_left && !line->send_timer) {
      line->send_bits >>= 1;
      line->send_left--;
      line->send_timer = line->divisor;
    }
    if (!line->send_left && sent < sends) {
      line->send_bits = (int64_t)bytes[sent++] << 1 | 1 << 9;
      line->send_left = 10;
      line->send_timer = line->divisor;
    }
    if (line->send_left) line->send_timer--;
    gates_put(g, rx, line->send_left ? line->send_bits & 1 : 1);
    gates_settle(g);
    int high = g->value[tx];
    silence = busy || line->receive_left ? 0 : silence + 1;
    if (!line->receive_left) {
      if (!high) line->receive_left = 10, line->receive_timer = line->divisor / 2;
    } else if (--line->receive_timer <= 0) {
      line->receive_timer = line->divisor;
      if (--line->receive_left == 0 && high) came[received++] = (uint8_t)line->receive_byte;
      else line->receive_byte = (line->receive_byte >> 1 | high << 7) & 255;
    }
    gates_clock(g);
    (*cycles)++;
  }
  return received;
}
