import { Global, Module } from '@nestjs/common';
import { Metrics } from './metrics.js';

/** The part of the HTTP edge that other modules inject; `setup.ts` installs the rest. */
@Global()
@Module({ providers: [Metrics], exports: [Metrics] })
export class HttpModule {}
