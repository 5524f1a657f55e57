import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Metrics } from '../../http/server/metrics.js';
import { type PeopleCount, StuckRepository } from './stuck.repository.js';

/** A count is used for so many times what it took: reading the metrics never costs more than a hundredth of that. */
const TIMES_WHAT_IT_TOOK = 100;

/** People by kind and state, and how many of them do not get on. */
@Injectable()
export class PeopleMetrics {
  private counts: Promise<PeopleCount[]> | undefined;
  private freshUntilMs = 0;

  constructor(
    metrics: Metrics,
    private readonly stuck: StuckRepository,
    private readonly clock: Clock,
  ) {
    this.declare(metrics, 'people', 'People by kind and state', ({ people }) => people);
    this.declare(metrics, 'people_stuck', 'People in a state for longer than they should be', ({ stuck }) => stuck);
  }

  private declare(metrics: Metrics, name: string, help: string, of: (count: PeopleCount) => number): void {
    metrics.gauge(name, help, ['kind', 'state'], async (gauge) => {
      const counts = await this.count();
      gauge.reset();
      for (const count of counts) gauge.set({ kind: count.kind, state: count.state }, of(count));
    });
  }

  /** Everybody is counted, which takes long when there are many: once for both gauges, and for readings that follow. */
  private count(): Promise<PeopleCount[]> {
    if (!this.counts || this.clock.monotonicMs() >= this.freshUntilMs) {
      const begunMs = this.clock.monotonicMs();
      this.freshUntilMs = Number.POSITIVE_INFINITY;
      this.counts = this.stuck.count().finally(() => {
        const endedMs = this.clock.monotonicMs();
        this.freshUntilMs = endedMs + TIMES_WHAT_IT_TOOK * (endedMs - begunMs);
      });
    }
    return this.counts;
  }
}
