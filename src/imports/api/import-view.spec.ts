import { etaSeconds } from './import-view.js';

const pace = { callMs: 200, blockedMs: 0 };
const unchecked = { min: 100, max: 200, linked: 0, absent: 0 };

test('is the expected calls at the allowed rate, by kind', () => {
  expect(etaSeconds([], pace)).toBe(0);
  expect(etaSeconds([{ ...unchecked, max: 100 }], pace)).toBe(20);
  expect(etaSeconds([unchecked, { ...unchecked, min: 200 }], pace)).toBe(30 + 40);
});

test('counts the rest of a pause after a 429', () => {
  expect(etaSeconds([{ ...unchecked, max: 100 }], { ...pace, blockedMs: 30_000 })).toBe(50);
});

test.each([
  [{ linked: 99, absent: 0 }, 21],
  [{ linked: 0, absent: 99 }, 40],
  [{ linked: 50, absent: 50 }, 30],
])('takes people for what those were who were checked: %j', (checked, seconds) => {
  expect(etaSeconds([{ ...unchecked, ...checked }], pace)).toBe(seconds);
});
