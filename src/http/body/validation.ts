import { ValidationPipe } from '@nestjs/common';
import type { ValidationError } from 'class-validator';
import { Problem } from '../problem/problem.js';

/** One fault of a request: where, and what is expected there. Never the value. */
interface FieldFault {
  /** JSON Pointer (RFC 6901) into the body or the query. */
  pointer: string;
  detail: string;
}

/** Faults that one answer lists at most; a hostile body can hold millions. */
const MOST_FAULTS = 50;

/** Flattens what class-validator found into faults with JSON Pointers, parents before children. */
function fieldFaults(errors: readonly ValidationError[], parent = ''): FieldFault[] {
  const faults: FieldFault[] = [];
  for (const error of errors) {
    if (faults.length >= MOST_FAULTS) break;
    const wholeBody = parent === '' && error.property === 'body' && error.constraints?.isObject !== undefined;
    const pointer = wholeBody ? '' : parent + pointerStep(String(error.property));
    for (const [rule, message] of Object.entries(error.constraints ?? {})) {
      faults.push({ pointer, detail: rule === 'whitelistValidation' ? 'is not a field of this request' : message });
    }
    faults.push(...fieldFaults(error.children ?? [], pointer));
  }
  return faults.slice(0, MOST_FAULTS);
}

/** The problem that names the first faulty field and lists all of them. */
function faultsProblem(whole: string, errors: readonly FieldFault[]): Problem {
  const { pointer, detail } = errors[0] ?? { pointer: '', detail: 'is not valid' };
  const where = pointer === '' ? whole : `The field ${pointer}`;
  return new Problem(400, 'validation', `${where} is not acceptable: ${detail}.`, { pointer, extensions: { errors } });
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

/** Levels of a JSON body; validation recurses over them. No request of this API has more than five. */
export const DEEPEST = 50;

/** Members of one object, and items of one list: validation compares them with each other. */
const MOST_MEMBERS = 100;
const MOST_ITEMS = 1_000;

/** Characters of a name that a pointer repeats. */
const LONGEST_NAME = 64;

/** Refuses what would make validation costly, in linear time: levels, members of an object, items of a list. */
export function shapeProblem(value: unknown, pointer = '', levels = DEEPEST): Problem | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0) return new Problem(400, 'too-deep', `The body nests more than ${DEEPEST} levels; flatten it.`);
  const names = Object.keys(value);
  const [most, what] = Array.isArray(value) ? [MOST_ITEMS, 'items'] : [MOST_MEMBERS, 'members'];
  if (names.length > most)
    return faultsProblem('The request', [{ pointer, detail: `must hold no more than ${most} ${what}` }]);
  for (const name of names) {
    const member = (value as Record<string, unknown>)[name];
    if (typeof member !== 'object') continue;
    const problem = shapeProblem(member, pointer + pointerStep(name), levels - 1);
    if (problem) return problem;
  }
  return undefined;
}

/** One step of a JSON Pointer, escaped as RFC 6901 §3 says. */
function pointerStep(name: string): string {
  return `/${name.slice(0, LONGEST_NAME).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
