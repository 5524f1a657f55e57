import { errorTrace, failureCode } from './error-trace.js';

/** Throws as the language itself does. */
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error('Nothing was thrown.');
}

describe('what is logged of an error', () => {
  const name = 'Ada Osei' as unknown as object;

  it.each([
    ['a member asked of a text', () => 'id' in name],
    [
      'a member given to a text',
      () => {
        (name as { id?: number }).id = 1;
      },
    ],
    ['a number instead of a list', () => new Map(19_570_112 as never)],
    ['an unknown language', () => new Intl.NumberFormat('Osei_Ada_19570112')],
  ])('never quotes a value: %s', (_, work) => {
    expect(JSON.stringify(errorTrace(thrownBy(work)))).not.toMatch(/Osei|1957/);
  });

  it('takes no line of a message for a place', () => {
    const trace = errorTrace(new Error('Key (email)\n    at Ada Osei'));
    expect(JSON.stringify(trace)).not.toContain('Osei');
    expect(trace.at).not.toHaveLength(0);
  });

  it('takes no line of a former message for a place', () => {
    const error = new Error('Key (email)\n    at Ada Osei');
    expect(error.stack).toContain('Osei');
    error.message = 'rewritten';
    expect(JSON.stringify(errorTrace(error))).not.toContain('Osei');
  });

  it('says what a fault of the program was about, and where', () => {
    const none = undefined as unknown as { email: string };
    const trace = errorTrace(thrownBy(() => none.email));
    expect(trace).toMatchObject({ error: 'TypeError', message: expect.stringContaining("reading 'email'") });
    expect(trace.at).not.toHaveLength(0);
    const empty = {} as { send: () => void };
    expect(errorTrace(thrownBy(() => empty.send())).message).toBe('empty.send is not a function');
  });
});

test('what is stored of a failure is a code and never a message', () => {
  expect(failureCode(Object.assign(new Error('Key (email)=(jane@roe.example)'), { code: '23505' }))).toBe(
    'database-23505',
  );
  expect(failureCode(Object.assign(new Error('x'), { code: 'ECONNRESET' }))).toBe('ECONNRESET');
  expect(failureCode(new TypeError('jane'))).toBe('TypeError');
  expect(failureCode(Object.assign(new Error('x'), { name: 'Jane Roe' }))).toBe('unknown');
  expect(failureCode('jane')).toBe('unknown');
});
