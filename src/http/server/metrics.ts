import { Global, Injectable, Module } from '@nestjs/common';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Every metric of the service begins with this. */
const PREFIX = 'notebridge_';

/** The registry behind `/metrics`. Labels are words of the program (states, operations, route patterns), never ids. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** A number that only grows. @param name without the prefix, ending in `_total` */
  counter<L extends string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    return new Counter({ name: PREFIX + name, help, labelNames, registers: [this.registry] });
  }

  /**
   * A number that goes up and down.
   *
   * @param collect sets the gauge when it is read, e.g. from a count in the database; when it throws, the gauge has no
   *   value, and the other metrics are read all the same
   */
  gauge<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    collect?: (gauge: Gauge<L>) => void | Promise<void>,
  ): Gauge<L> {
    const collecting = collect && {
      async collect(this: Gauge<L>) {
        try {
          await collect(this);
        } catch {
          this.reset();
        }
      },
    };
    return new Gauge({ name: PREFIX + name, help, labelNames, registers: [this.registry], ...collecting });
  }

  /** A distribution. @param buckets upper bounds in the metric's unit (seconds for `_seconds`) */
  histogram<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: readonly number[],
  ): Histogram<L> {
    return new Histogram({ name: PREFIX + name, help, labelNames, buckets: [...buckets], registers: [this.registry] });
  }
}

/** What other modules inject of the HTTP edge; the rest is installed by `setup.ts`. */
@Global()
@Module({ providers: [Metrics], exports: [Metrics] })
export class HttpModule {}
