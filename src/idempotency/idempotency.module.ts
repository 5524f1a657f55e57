import { Global, Module } from '@nestjs/common';
import { Idempotency } from './idempotency.js';

/** Runs repeated requests once. */
@Global()
@Module({ providers: [Idempotency], exports: [Idempotency] })
export class IdempotencyModule {}
