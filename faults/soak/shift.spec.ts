import { Shift } from './shift.js';

test('work goes on until the end, and what is under way is waited for', async () => {
  const shift = new Shift();
  const done: string[] = [];
  const finished = new Promise<void>((resolve) => {
    shift.repeat(
      () => 0,
      async () => {
        done.push('begun');
        if (done.length > 2) resolve();
        await null;
        done.push('ended');
      },
    );
  });
  await finished;
  await shift.over();
  expect(done.at(-1)).toBe('ended');
  expect(shift.isOver).toBe(true);
});

test('a fault ends the shift and is told', async () => {
  const shift = new Shift();
  shift.repeat(
    () => 0,
    () => {
      throw new Error('the disk is full');
    },
  );
  await shift.rest(60_000_000);
  await expect(shift.over()).rejects.toThrow('the disk is full');
});
