import { Injectable } from '@nestjs/common';
import { Metrics } from '../http/metrics.js';
import { type PeopleCount, StuckRepository } from './stuck.repository.js';

/** People by kind and state, and how many of them do not get on. */
@Injectable()
export class PeopleMetrics {
  private counting: Promise<PeopleCount[]> | undefined;

  constructor(
    metrics: Metrics,
    private readonly stuck: StuckRepository,
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

  /** Both gauges are read at once: people are counted once for both. */
  private count(): Promise<PeopleCount[]> {
    this.counting ??= this.stuck.count().finally(() => {
      this.counting = undefined;
    });
    return this.counting;
  }
}
