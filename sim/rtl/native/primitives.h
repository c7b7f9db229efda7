// What generated code is written in: integer types, and operations on more bits than one integer has.
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

// A condition that hardly ever holds.
#define RARELY(condition) __builtin_expect(condition, 0)

// 64 bits from bit `low` of an array that has a word to spare behind its last.
static inline u64 bits_of(const u64 *words, u32 low) {
  const u32 k = low / 64, r = low % 64;
  return r ? words[k] >> r | words[k + 1] << (64 - r) : words[k];
}

// The same, zero beyond `count` words.
static inline u64 bits_within(const u64 *words, u32 count, u64 low) { return low < 64ull * count ? bits_of(words, (u32)low) : 0; }

// `width` bits, at most 64, from bit `low` of a row: bits of more than one word lie in neighbours.
static inline u64 row_bits(const u64 *row, u32 low, u32 width) {
  const u32 k = low / 64, r = low % 64;
  u64 value = row[k] >> r;
  if (r + width > 64) value |= row[k + 1] << (64 - r);
  return width < 64 ? value & ((1ull << width) - 1) : value;
}

// out[0 .. count) = in[0 .. size) shifted right by `amount` bits; in[size] is zero.
static inline void shift_right(u64 *out, u32 count, const u64 *in, u32 size, u64 amount) {
  const u64 k = amount / 64;
  const u32 r = amount % 64;
  for (u32 i = 0; i < count; i++) {
    const u64 low = i + k < size ? in[i + k] : 0, high = i + k + 1 < size ? in[i + k + 1] : 0;
    out[i] = r ? low >> r | high << (64 - r) : low;
  }
}

// Sets `width` bits from bit `low` of an array of zeros.
static inline void put(u64 *out, u32 low, u32 width, u64 value) {
  const u32 k = low / 64, r = low % 64;
  out[k] |= value << r;
  if (r + width > 64) out[k + 1] |= value >> (64 - r);
}

// Byte b of entry n is all ones where bit b of n is set.
extern const u64 BYTES[256];

