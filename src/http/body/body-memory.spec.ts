import { PassThrough } from 'node:stream';
import { Clock } from '../../config/clock.js';
import type { Problem } from '../problem/problem.js';
import { BodyMemory } from './body-memory.js';

/** A clock that moves only when a test moves it, and never keeps the process alive. */
class SetClock extends Clock {
  private nowMs = 0;
  private timers: { atMs: number; work: () => void }[] = [];

  override monotonicMs(): number {
    return this.nowMs;
  }

  override after(ms: number, work: () => void): () => void {
    this.timers.push({ atMs: this.nowMs + ms, work });
    return () => undefined;
  }

  advance(ms: number): void {
    this.nowMs += ms;
    const due = this.timers.filter(({ atMs }) => atMs <= this.nowMs);
    this.timers = this.timers.filter(({ atMs }) => atMs > this.nowMs);
    for (const { work } of due) work();
  }
}

const TIMEOUT_SECONDS = 30;

/** Room for 100 bytes. */
const memory = (clock: Clock = new SetClock()) => new BodyMemory(100, TIMEOUT_SECONDS, clock);

/** A body, and why it was refused. */
function bodyIn(bodies: BodyMemory) {
  const payload = new PassThrough();
  const refusals: string[] = [];
  bodies.watch(payload, (problem: Problem) => refusals.push(problem.type));
  return { payload, refusals };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('bodies that arrive', () => {
  it('share one limit, and the one that began first gives way', async () => {
    const bodies = memory();
    const [first, second, third] = [bodyIn(bodies), bodyIn(bodies), bodyIn(bodies)];
    first.payload.write(Buffer.alloc(40));
    second.payload.write(Buffer.alloc(40));
    await turn();
    expect(bodies.bytes).toBe(80);
    third.payload.write(Buffer.alloc(50));
    await turn();
    expect([first.refusals, second.refusals, third.refusals]).toEqual([['busy'], [], []]);
    expect(bodies.bytes).toBe(90);
  });

  it('release their bytes when they are complete or interrupted', async () => {
    const bodies = memory();
    const [complete, broken] = [bodyIn(bodies), bodyIn(bodies)];
    complete.payload.end(Buffer.alloc(60));
    broken.payload.write(Buffer.alloc(30));
    await turn();
    broken.payload.destroy();
    await turn();
    expect(bodies.bytes).toBe(0);
  });

  it('are refused if one is larger than the limit', async () => {
    const bodies = memory();
    const large = bodyIn(bodies);
    large.payload.write(Buffer.alloc(101));
    await turn();
    expect([large.refusals, bodies.bytes]).toEqual([['busy'], 0]);
  });

  it('keep their bytes until their handler is done, and do not give way once they are complete', async () => {
    const bodies = memory();
    const refusals: string[] = [];
    const payload = new PassThrough();
    const held = bodies.watch(payload, ({ type }) => refusals.push(`held: ${type}`), true);
    payload.end(Buffer.alloc(80));
    await turn();
    const late = bodies.open(({ type }) => refusals.push(`late: ${type}`));
    late.add(30);
    expect([refusals, bodies.bytes]).toEqual([['late: busy'], 80]);
    held.release();
    expect(bodies.bytes).toBe(0);
  });

  it('are refused if they do not arrive in time', () => {
    const clock = new SetClock();
    const { refusals } = bodyIn(memory(clock));
    clock.advance(TIMEOUT_SECONDS * 1_000 - 1);
    expect(refusals).toEqual([]);
    clock.advance(1);
    expect(refusals).toEqual(['request-timeout']);
  });
});
