import { keyParts } from './reference-key.js';

/** Maximum values of a key. More than one resource is ambiguous anyway, and null may be one of the values. */
const VALUES_MAX = 3;

/** The values of resources by their keys, found by references as far as base URLs allow. */
export class KeyIndex<Value> {
  /** By key; those with a base URL also with `*` in place of it. */
  private readonly values = new Map<string, Value[]>();

  /** @returns false if nothing had to be stored */
  add(key: string, value: Value): boolean {
    const { target, base } = keyParts(key);
    if (base !== undefined) this.store(`${target} *`, value);
    return this.store(key, value);
  }

  private store(key: string, value: Value): boolean {
    const known = this.values.get(key) ?? [];
    if (known.length >= VALUES_MAX || known.includes(value)) return false;
    this.values.set(key, [...known, value]);
    return true;
  }

  /** True if a resource of any server has the type and id of this key. */
  has(key: string): boolean {
    const { target } = keyParts(key);
    return this.values.has(target) || this.values.has(`${target} *`);
  }

  /**
   * Finds the resources to which a key leads. An absolute URL leads to a resource of that server only. A relative one
   * leads to a resource of the same server. If either server is unknown, the type and id must suffice.
   */
  find(key: string): Value[] {
    const { target, base, isOwn } = keyParts(key);
    if (base === undefined) return this.values.get(target) ?? this.values.get(`${target} *`) ?? [];
    return this.values.get(`${target} ${base}`) ?? (isOwn ? this.values.get(target) : undefined) ?? [];
  }
}
