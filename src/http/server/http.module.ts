import { Global, Module } from '@nestjs/common';
import { Metrics } from './metrics.js';

/** What every room needs of the HTTP edge by injection; the rest is installed by `setup.ts`. */
@Global()
@Module({ providers: [Metrics], exports: [Metrics] })
export class HttpModule {}
