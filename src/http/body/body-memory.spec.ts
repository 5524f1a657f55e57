import { PassThrough } from 'node:stream';
import { Clock } from '../../config/clock.js';
import type { Problem } from '../problem/problem.js';
import { BodyMemory } from './body-memory.js';

/** Room for 100 bytes. */
const memory = (timeoutSeconds = 3_600) => new BodyMemory(100, timeoutSeconds, new Clock());

/** A body, and why it was refused. */
function bodyIn(bodies: BodyMemory) {
  const payload = new PassThrough();
  const refusals: string[] = [];
  bodies.watch(payload, (problem: Problem) => refusals.push(problem.type));
  return { payload, refusals };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('bodies that arrive', () => {
  it('have so much room together, and whoever began first gives way', async () => {
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

  it('take no room any more once they are complete or broken off', async () => {
    const bodies = memory();
    const [complete, broken] = [bodyIn(bodies), bodyIn(bodies)];
    complete.payload.end(Buffer.alloc(60));
    broken.payload.write(Buffer.alloc(30));
    await turn();
    broken.payload.destroy();
    await turn();
    expect(bodies.bytes).toBe(0);
  });

  it('are refused alone when one is larger than the whole room', async () => {
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

  it('have to be there in time', async () => {
    const refused = await new Promise<string>((resolve) => {
      const payload = new PassThrough();
      memory(0.01).watch(payload, ({ type }) => resolve(type));
    });
    expect(refused).toBe('request-timeout');
  });
});
