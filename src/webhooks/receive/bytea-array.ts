const BYTEA_OID = 17;
const HEADER_BYTES = 20;

/**
 * A `bytea[]` as PostgreSQL's binary format has it (array_recv): dimensions, a flag for nulls, the elements' type, their
 * number, the first index, then each with its length. As a text every byte would be two hex digits, for both sides to
 * spell and read.
 *
 * @param items at least one
 * @returns a parameter for pg, which sends a Buffer in binary
 */
export function byteaArray(items: readonly Buffer[]): Buffer {
  const size = items.reduce((sum, item) => sum + 4 + item.length, HEADER_BYTES);
  const array = Buffer.allocUnsafe(size);
  let at = 0;
  for (const word of [1, 0, BYTEA_OID, items.length, 1]) at = array.writeInt32BE(word, at);
  for (const item of items) {
    at = array.writeInt32BE(item.length, at);
    at += item.copy(array, at);
  }
  return array;
}
