import { getSchemaPath, type SchemaObject } from '@nestjs/swagger';
import type { Word } from '../../words/word.js';
import { WORDS } from '../../words/words.js';

export class WordResponse implements Word {
  label!: string;
  /** Its meaning, and what to do */
  hint?: string;
  /** The resolve action that is usually right */
  action?: string;
  /** When that action is right, and what to do otherwise */
  why?: string;
}

const names = Object.keys(WORDS);

/** Each vocabulary has words by code. */
export const WORDS_SCHEMA = {
  type: 'object',
  properties: Object.fromEntries(
    names.map((name) => [name, { type: 'object', additionalProperties: { $ref: getSchemaPath(WordResponse) } }]),
  ),
  required: names,
} satisfies SchemaObject;
