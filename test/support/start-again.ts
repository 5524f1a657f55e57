import { until } from '../../harness/until.js';
import { isDatabaseUnavailable } from '../../src/http/problem/fault.js';

/** Starts an app, and again when a slow machine's database was late, as whoever keeps a service running would. */
export function startAgain<App extends object>(start: () => Promise<App>): Promise<App> {
  return until('the app is started', async () => {
    try {
      return await start();
    } catch (refusal) {
      if (isDatabaseUnavailable(refusal)) return undefined;
      throw refusal;
    }
  });
}
