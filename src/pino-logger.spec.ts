import { pino } from 'pino';
import { PinoLogger, pinoOptions } from './pino-logger.js';

function logged(write: (logger: PinoLogger) => void): { text: string; lines: Record<string, unknown>[] } {
  let text = '';
  write(new PinoLogger(pino(pinoOptions('debug'), { write: (line: string) => (text += line) })));
  const lines = text.trim().split('\n').filter(Boolean);
  return { text, lines: lines.map((line) => JSON.parse(line)) };
}

test('what Nest hands over becomes a line with its context', () => {
  const { lines } = logged((logger) => {
    logger.log('hello', 'Room');
    logger.warn({ msg: 'careful', count: 2 }, 'Room');
    logger.verbose('too quiet', 'Room');
  });
  expect(lines).toMatchObject([
    { level: 'info', context: 'Room', msg: 'hello' },
    { level: 'warn', context: 'Room', msg: 'careful', count: 2, time: expect.stringMatching(/^\d{4}-.*Z$/) },
  ]);
});

test("logs Nest's modules and routes at debug level, and its errors as errors", () => {
  const { lines } = logged((logger) => {
    logger.log('Mapped {/v1/people, GET} route', 'RouterExplorer');
    logger.error('cannot resolve', undefined, 'InstanceLoader');
  });
  expect(lines.map(({ level }) => level)).toEqual(['debug', 'error']);
});

test('an error that ends the start is for debugging: main prints its sentence', () => {
  const { lines } = logged((logger) => logger.error(new Error('DATA_KEYS lacks the key k1'), 'ExceptionHandler'));
  expect(lines.map(({ level }) => level)).toEqual(['debug']);
});

test('an error keeps its kind and its place and loses what hangs on it', () => {
  const error = Object.assign(new TypeError('x is not a function'), { config: { headers: 'secret' }, row: 'Jane' });
  const { text, lines } = logged((logger) => logger.error(error, 'Room'));
  expect(lines[0]).toMatchObject({ err: { type: 'TypeError', message: 'x is not a function' } });
  expect(text).not.toMatch(/jane|secret/i);
});

test('members that no line should have are struck out, also two levels down', () => {
  const person = { email: 'jane@roe.example', firstName: 'Jane' };
  const { text } = logged((logger) => {
    logger.log({ msg: 'a', ...person, authorization: 'Bearer jane', otpToken: 'jane' });
    logger.log({ msg: 'b', person, request: { body: person, headers: person } });
  });
  expect(text).not.toMatch(/jane/i);
  expect(text).toContain('[redacted]');
});
