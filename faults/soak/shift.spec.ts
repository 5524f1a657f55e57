import { Shift } from './shift.js';

test('work continues until the end, and work in progress is awaited', async () => {
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

test('long work does not put off what comes after it', async () => {
  let now = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  const shift = new Shift();
  const rests: number[] = [];
  jest.spyOn(shift, 'rest').mockImplementation(async (ms) => {
    rests.push(ms);
    now += Math.max(0, ms);
  });
  await new Promise<void>((resolve) => {
    shift.repeat(
      () => 120_000,
      () => {
        now += rests.length < 3 ? 70_000 : 600_000; // shorter than the wait, and then longer
        if (rests.length === 4) resolve();
      },
    );
  });
  jest.restoreAllMocks();
  await shift.over();
  expect(rests).toEqual([120_000, 50_000, 50_000, -5_000]);
});
