import { csrfTokenOf, sessionCookie, sessionToken } from './session-cookie.js';

const TOKEN = 'A'.repeat(43);

test.each([
  [undefined, undefined],
  ['', undefined],
  [`__Host-notebridge_session=${TOKEN}`, TOKEN],
  [`theme=dark; __Host-notebridge_session=${TOKEN}; other=1`, TOKEN],
  ['__Host-notebridge_session=short', undefined],
  [`__Host-notebridge_session=${TOKEN}B`, undefined],
  [`x__Host-notebridge_session=${TOKEN}`, undefined],
  [`__Host-notebridge_session="${TOKEN}"`, undefined],
  [`notebridge_session=${'B'.repeat(43)}; __Host-notebridge_session=${TOKEN}`, TOKEN], // planted by a neighbouring host
])('of %j the token is %j', (header, token) => {
  expect(sessionToken(header)).toBe(token);
});

test('reads the cookie that it set, which scripts and other sites cannot see', () => {
  const [pair, ...attributes] = sessionCookie(TOKEN).split('; ');
  expect(sessionToken(pair)).toBe(TOKEN);
  expect(attributes.sort()).toEqual(['HttpOnly', 'Path=/', 'SameSite=Strict', 'Secure']);
  expect(sessionCookie(undefined)).toContain('Max-Age=0');
});

test('the token against forged requests differs with the session, and is not the session', () => {
  expect(csrfTokenOf(TOKEN)).toBe(csrfTokenOf(TOKEN));
  expect(csrfTokenOf(TOKEN)).not.toBe(csrfTokenOf('B'.repeat(43)));
  expect(csrfTokenOf(TOKEN)).not.toContain(TOKEN);
});
