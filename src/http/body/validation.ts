import { ValidationPipe } from '@nestjs/common';
import type { ValidationError } from 'class-validator';
import { Problem } from '../problem/problem.js';

/** One fault of a request: where, and what is expected there. Never the value. */
interface FieldFault {
  /** JSON Pointer (RFC 6901) into the body or the query. */
  pointer: string;
  detail: string;
}

/** Maximum faults that one answer lists; a hostile body can contain millions. */
const MAX_FAULTS = 50;

/** Flattens what class-validator found into faults with JSON Pointers, parents before children. */
function fieldFaults(errors: readonly ValidationError[], parent = ''): FieldFault[] {
  const faults: FieldFault[] = [];
  for (const error of errors) {
    if (faults.length >= MAX_FAULTS) break;
    const wholeBody = parent === '' && error.property === 'body' && error.constraints?.isObject !== undefined;
    const pointer = wholeBody ? '' : parent + pointerStep(String(error.property));
    for (const [rule, message] of Object.entries(error.constraints ?? {})) {
      faults.push({ pointer, detail: rule === 'whitelistValidation' ? 'is not a field of this request' : message });
    }
    faults.push(...fieldFaults(error.children ?? [], pointer));
  }
  return faults.slice(0, MAX_FAULTS);
}

/** The problem that names the first faulty field and lists all of them. */
function faultsProblem(whole: string, errors: readonly FieldFault[]): Problem {
  const { pointer, detail } = errors[0] ?? { pointer: '', detail: 'is not valid' };
  const where = pointer === '' ? whole : `The field ${pointer}`;
  return new Problem('validation', `${where} is invalid: ${detail}.`, { pointer, extensions: { errors } });
}

/** The refusal of a body for one of its fields, in the form in which validation refuses. */
export function requestFault(pointer: string, detail: string): Problem {
  return faultsProblem('The body', [{ pointer, detail }]);
}

/** The pipe of every route: DTOs are instances of their classes, unknown fields are refused. */
export function validationPipe(): ValidationPipe {
  return new ValidationPipe({
    whitelist: true,
    forbidNonWhitelisted: true,
    transform: true,
    validationError: { target: false, value: false },
    exceptionFactory: (errors) => faultsProblem('The body', fieldFaults(errors)),
  });
}

/** Maximum members of an object, and items of a list, because validation compares them with each other. */
const MAX_MEMBERS = 100;
const MAX_ITEMS = 1_000;

/** Maximum characters of a name in a pointer. */
const MAX_NAME_LENGTH = 64;

/**
 * Rejects a value that would be costly to validate, in linear time: too many members of an object or items of a list.
 *
 * @param value of a query, which is flat, or of a body, whose depth was checked when it was read
 */
export function shapeProblem(value: unknown, pointer = ''): Problem | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const names = Object.keys(value);
  const [max, what] = Array.isArray(value) ? [MAX_ITEMS, 'items'] : [MAX_MEMBERS, 'members'];
  if (names.length > max)
    return faultsProblem('The request', [{ pointer, detail: `must hold no more than ${max} ${what}` }]);
  for (const name of names) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member !== 'object') continue;
    const problem = shapeProblem(member, pointer + pointerStep(name));
    if (problem) return problem;
  }
  return undefined;
}

/** One step of a JSON Pointer, escaped as RFC 6901 §3 says. */
function pointerStep(name: string): string {
  return `/${name.slice(0, MAX_NAME_LENGTH).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
