import { type DynamicModule, Global, Module } from '@nestjs/common';
import { Clock } from './clock.js';
import { Env } from './env.js';
import { Random } from './random.js';
import { Stopping } from './stopping.js';

/** Provides the environment, which the process reads once, the clock and the randomness. */
@Global()
@Module({})
export class ConfigModule {
  /** @param env validated, with the address of the database and the keys */
  static with(env: Env): DynamicModule {
    return {
      module: ConfigModule,
      providers: [{ provide: Env, useValue: env }, Clock, Random, Stopping],
      exports: [Env, Clock, Random, Stopping],
    };
  }
}
