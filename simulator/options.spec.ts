import { optionsFrom } from './options.js';

describe('the environment of the simulator', () => {
  it('defaults to 300 calls in 60 seconds on port 4010, without latency', () => {
    const { port, settings } = optionsFrom({});
    expect([port, settings?.callsPerWindow, settings?.windowSeconds, settings?.latencyMs]).toEqual([
      4010,
      300,
      60,
      [0, 0],
    ]);
  });

  it.each([
    ['200', [200, 200]],
    ['20-1000', [20, 1_000]],
  ])('a latency of %s ms', (SIMULATOR_LATENCY_MS, range) => {
    expect(optionsFrom({ SIMULATOR_LATENCY_MS }).settings?.latencyMs).toEqual(range);
  });

  it.each([
    ['SIMULATOR_PORT', 'http'],
    ['SIMULATOR_CALLS_PER_MINUTE', '-1'],
    ['SIMULATOR_LATENCY_MS', '1000-20'],
    ['SIMULATOR_SEED', 'x'],
    ['SIMULATOR_PORT', '70000'],
    ['SIMULATOR_PORT', '1.5'],
    ['SIMULATOR_CALLS_PER_MINUTE', '0'],
    ['SIMULATOR_WINDOW_SECONDS', 'Infinity'],
    ['SIMULATOR_WEBHOOK_URL', 'localhost'],
    ['SIMULATOR_WEBHOOK_URL', 'localhost:3000/webhooks/platform'],
    ['SIMULATOR_PUBLIC_URL', 'ftp://x'],
  ])('rejects %s=%s with the allowed values', (name, value) => {
    expect(() => optionsFrom({ [name]: value })).toThrow(new RegExp(`^${name} must be [^.]*[^.\\n]*\\.`));
  });
});
