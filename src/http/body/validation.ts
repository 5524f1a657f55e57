import { ValidationPipe } from '@nestjs/common';
import type { ValidationError } from 'class-validator';
import { Problem } from '../problem/problem.js';
import { pointerStep } from './body-shape.js';

/** One fault of a request: where, and what is expected there. Never the value. */
export interface FieldFault {
  /** JSON Pointer (RFC 6901) into the body or the query. */
  pointer: string;
  detail: string;
}

/** Faults that one answer lists at most; a hostile body can hold millions. */
const MOST_FAULTS = 50;

/** Flattens what class-validator found into faults with JSON Pointers, parents before children. */
export function fieldFaults(errors: readonly ValidationError[], parent = ''): FieldFault[] {
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
export function validationProblem(errors: readonly ValidationError[]): Problem {
  const faults = fieldFaults(errors);
  const first = faults[0] ?? { pointer: '', detail: 'is not valid' };
  const where = first.pointer === '' ? 'The body' : `The field ${first.pointer}`;
  return new Problem(400, 'validation', `${where} is not acceptable: ${first.detail}.`, {
    pointer: first.pointer,
    extensions: { errors: faults },
  });
}

/** The pipe of every route: DTOs are instances of their classes, unknown fields are refused. */
export function validationPipe(): ValidationPipe {
  return new ValidationPipe({
    whitelist: true,
    forbidNonWhitelisted: true,
    transform: true,
    validationError: { target: false, value: false },
    exceptionFactory: validationProblem,
  });
}
