import { ConflictException, HttpException, NotFoundException } from '@nestjs/common';
import { errorTrace } from '../../errors/error-trace.js';
import { problemOf } from './fault.js';
import { Problem } from './problem.js';

const withCode = (code: string, message = 'x') => Object.assign(new Error(message), { code });

test.each([
  withCode('08006'),
  withCode('57P01'),
  withCode('53300'),
  withCode('25006'),
  withCode('ECONNREFUSED'),
  withCode('CERT_HAS_EXPIRED'),
  withCode('P1001'),
  new Error('Connection terminated unexpectedly'),
  new Error('timeout exceeded when trying to connect'),
  new Error('outer', { cause: withCode('57P03') }),
])('an unavailable database is 503 with Retry-After: %s', (error) => {
  const problem = problemOf(error);
  expect(problem?.type).toBe('database-unavailable');
  expect(problem?.headers()).toEqual({ 'retry-after': '5' });
});

test.each([
  withCode('23505'),
  Object.assign(withCode('ECONNREFUSED'), { isAxiosError: true }),
  new Error('?'),
  'text',
  undefined,
])('any other fault is unexpected: %s', (error) => {
  expect(problemOf(error)).toBeUndefined();
});

test.each(['22003', '22007', '22008', '22021', '22P02', '22P05'])(
  'a value that the database rejects is the fault of the caller: %s',
  (code) => {
    const problem = problemOf(withCode(code, 'invalid byte sequence: "Jane"'));
    expect([problem?.status, problem?.type]).toEqual([400, 'bad-value']);
    expect(problem?.detail).not.toContain('Jane');
  },
);

test('messages of foreign errors are not passed on', () => {
  const errors = [
    new NotFoundException('Cannot GET /v1/x?email=jane@roe.example'),
    new ConflictException('jane@roe.example'),
  ];
  for (const error of errors) expect(JSON.stringify(problemOf(error)?.details())).not.toContain('jane');
});

test('a 5xx HttpException without a specific meaning is unexpected', () => {
  expect(problemOf(new HttpException('x', 500))).toBeUndefined();
});

test('a problem is answered as it is, with Retry-After of at least a second', () => {
  const problem = new Problem('busy', 'Not now.', { retryAfterSeconds: 0.2, extensions: { count: 2 } });
  expect(problemOf(problem)).toBe(problem);
  expect(problem.details()).toEqual({
    type: 'urn:notebridge:problem:busy',
    title: 'Busy',
    status: 503,
    detail: 'Not now.',
    retryAfterSeconds: 0.2,
    count: 2,
  });
  expect(problem.headers()).toEqual({ 'retry-after': '1' });
});

test('what is logged of a fault says where it was thrown and quotes no value', () => {
  const error = Object.assign(new Error('invalid input syntax for type uuid: "Jane Roe"'), {
    code: '22P02',
    detail: 'Key (email)=(jane@roe.example)',
    table: 'people',
  });
  const trace = errorTrace(error);
  expect(trace).toMatchObject({ error: 'Error', code: '22P02', table: 'people' });
  expect(JSON.stringify(trace)).not.toMatch(/jane/i);
  expect((trace.at as string[])[0]).toContain('fault.spec');
});
