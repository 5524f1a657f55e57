import { Param, type PipeTransform } from '@nestjs/common';
import { Problem } from '../problem/problem.js';

/** A UUID of any version and variant: what a uuid column takes. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

class UuidPipe implements PipeTransform<unknown, string> {
  transform(value: unknown): string {
    if (typeof value === 'string' && UUID.test(value)) return value.toLowerCase();
    const detail = 'The id in the path must be a UUID, as the list shows it.';
    throw new Problem('bad-id', detail);
  }
}

/** The `{id}` of the path, which must be a UUID. */
export const UuidParam = (): ParameterDecorator => Param('id', new UuidPipe());
