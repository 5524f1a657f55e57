import { ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import { IsInt, IsOptional, Max, Min } from 'class-validator';
import { parseJson } from '../../text/json-object.js';
import { isMoment } from '../../text/moment.js';
import { Problem } from '../problem/problem.js';
import { OptionalText } from './fields.js';
import { UUID } from './uuid-param.js';

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Pass it as `cursor` to get the next page; null on the last page. */
  nextCursor: string | null;
}

/** The members of every page besides its items, for OpenAPI. */
export abstract class PageResponse {
  nextCursor!: string | null;
}

/** The query of every list. */
export class PageQuery {
  /** Items on a page */
  @ApiPropertyOptional()
  @IsOptional()
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(200)
  limit: number = 50;

  /** `nextCursor` of the previous page */
  @OptionalText(2048)
  cursor?: string;
}

/** The end of a page: the sort key of its last item. */
export type CursorKey = readonly (string | number)[];

/** Packs a sort key into an opaque cursor. It must not contain anything personal, because cursors are part of URLs. */
export function encodeCursor(key: CursorKey): string {
  return Buffer.from(JSON.stringify(key), 'utf8').toString('base64url');
}

/** An id or a cursor that fits PostgreSQL's bigint, as a decimal text. */
export const BIGINT = /^\d{1,18}$/;

/** The kinds of parts of a sort key. They are checked so that SQL gets only values that it can read. */
const PARTS = {
  string: (part: unknown) => typeof part === 'string' && !part.includes('\0'),
  /** An integer of PostgreSQL, of 32 bits. */
  number: (part: unknown) => Number.isInteger(part) && Number(part) === (Number(part) | 0),
  time: (part: unknown) => isMoment(part) && part.includes('T'),
  uuid: (part: unknown) => typeof part === 'string' && UUID.test(part),
  bigint: (part: unknown) => typeof part === 'string' && BIGINT.test(part),
};

/**
 * Unpacks a cursor; undefined for the first page.
 *
 * @param shape what the parts of the key must be, in their order
 * @throws {Problem} 400 `bad-cursor`
 */
export function decodeCursor<K extends CursorKey>(
  cursor: string | undefined,
  ...shape: (keyof typeof PARTS)[]
): K | undefined {
  if (cursor === undefined) return undefined;
  const key = parsed(cursor);
  if (Array.isArray(key) && key.length === shape.length && shape.every((kind, i) => PARTS[kind](key[i]))) {
    return key as unknown as K;
  }
  throw new Problem('bad-cursor', 'The cursor does not belong to this list. Start again without it.', {
    pointer: '/cursor',
  });
}

function parsed(cursor: string): unknown {
  if (!/^[A-Za-z0-9_-]+$/.test(cursor)) return undefined;
  return parseJson(Buffer.from(cursor, 'base64url').toString('utf8'));
}

/**
 * Makes a page out of `limit + 1` rows that were read, so that a next page is known without counting.
 *
 * @param keyOf the sort key of a row
 */
export function pageOf<R, T = R>(
  rows: readonly R[],
  limit: number,
  keyOf: (row: R) => CursorKey,
  show: (row: R) => T = (row) => row as unknown as T,
): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const nextCursor = rows.length > limit && last !== undefined ? encodeCursor(keyOf(last)) : null;
  return { items: shown.map(show), nextCursor };
}
