import { Clock } from '../../config/clock.js';
import { RequestsInFlight } from './requests-in-flight.js';

/** A clock that the test moves. */
class ManualClock extends Clock {
  ms = 0;
  private readonly timers: [atMs: number, work: () => void][] = [];

  override monotonicMs(): number {
    return this.ms;
  }

  override after(ms: number, work: () => void): () => void {
    this.timers.push([this.ms + ms, work]);
    return () => {};
  }

  advance(ms: number): void {
    this.ms += ms;
    for (const [atMs, work] of this.timers) if (atMs <= this.ms) work();
  }
}

function requests() {
  const clock = new ManualClock();
  const inFlight = new RequestsInFlight({ REQUESTS_PER_CALLER: 2, WAITING_REQUESTS_PER_CALLER: 3 }, clock);
  const enter = (caller = 'key', waits = false) => {
    try {
      return inFlight.enter(caller, waits);
    } catch (error) {
      return (error as { type: string }).type;
    }
  };
  return { clock, enter };
}

describe('requests in flight', () => {
  it('have a limit for each caller', () => {
    const { enter } = requests();
    const leave = enter() as (isAnswered: boolean) => void;
    enter();
    expect(enter()).toBe('too-many-requests');
    expect(enter('another')).toEqual(expect.any(Function));
    leave(true);
    expect(enter()).toEqual(expect.any(Function));
  });

  it('have another limit while they wait', () => {
    const { enter } = requests();
    const all = Array.from({ length: 4 }, () => enter('key', true));
    expect(all.map((each) => typeof each)).toEqual(['function', 'function', 'function', 'string']);
    expect(enter()).toEqual(expect.any(Function));
  });

  it('count as waiting after two seconds, and have a limit together', () => {
    const { clock, enter } = requests();
    for (let second = 0; second < 4; second += 2) {
      expect([enter(), enter()]).toEqual([expect.any(Function), expect.any(Function)]);
      clock.advance(2_000);
    }
    expect([enter(), enter()]).toEqual([expect.any(Function), 'too-many-requests']);
  });

  it('still count for a second after their caller has gone', () => {
    const { clock, enter } = requests();
    const leave = enter() as (isAnswered: boolean) => void;
    enter();
    leave(false);
    expect(enter()).toBe('too-many-requests');
    clock.advance(1_000);
    expect(enter()).toEqual(expect.any(Function));
  });
});
