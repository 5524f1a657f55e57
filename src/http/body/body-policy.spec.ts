import { PassThrough } from 'node:stream';
import { Clock } from '../../config/clock.js';
import type { Problem } from '../problem/problem.js';
import { ArrivingBodies } from './body-policy.js';

const LIMITS = { BODY_TIMEOUT_SECONDS: 3_600, ARRIVING_BODIES_LIMIT: 100 };

/** A body, and why it was refused. */
function bodyIn(bodies: ArrivingBodies) {
  const payload = new PassThrough();
  const refusals: string[] = [];
  bodies.watch(payload, (problem: Problem) => refusals.push(problem.type));
  return { payload, refusals };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('bodies that arrive', () => {
  it('have so much room together, and whoever began first gives way', async () => {
    const bodies = new ArrivingBodies(LIMITS, new Clock());
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
    const bodies = new ArrivingBodies(LIMITS, new Clock());
    const [complete, broken] = [bodyIn(bodies), bodyIn(bodies)];
    complete.payload.end(Buffer.alloc(60));
    broken.payload.write(Buffer.alloc(30));
    await turn();
    broken.payload.destroy();
    await turn();
    expect(bodies.bytes).toBe(0);
  });

  it('are refused alone when one is larger than the whole room', async () => {
    const bodies = new ArrivingBodies(LIMITS, new Clock());
    const large = bodyIn(bodies);
    large.payload.write(Buffer.alloc(101));
    await turn();
    expect([large.refusals, bodies.bytes]).toEqual([['busy'], 0]);
  });

  it('have to be there in time', async () => {
    const refused = await new Promise<string>((resolve) => {
      const payload = new PassThrough();
      new ArrivingBodies({ ...LIMITS, BODY_TIMEOUT_SECONDS: 0.01 }, new Clock()).watch(payload, ({ type }) =>
        resolve(type),
      );
    });
    expect(refused).toBe('request-timeout');
  });
});
