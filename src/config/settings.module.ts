import { type DynamicModule, Global, Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { Clock } from './clock.js';
import { Env } from './env.js';
import { Random } from './random.js';
import { Stopping } from './stopping.js';

/** The key under which @nestjs/config keeps the settings. */
const KEY = 'env';

/** Provides the settings, the clock and the randomness to every module. */
@Global()
@Module({})
export class SettingsModule {
  /**
   * @param env as `validateEnv` returns it. `main` reads it before Nest starts, because the HTTP adapter and the migrations
   *   need it. It is one object under one key: Nest copies each value that `validate` returns into `process.env`, also a
   *   secret of a file.
   */
  static with(env: Env): DynamicModule {
    return {
      module: SettingsModule,
      imports: [ConfigModule.forRoot({ ignoreEnvFile: true, validate: () => ({ [KEY]: env }) })],
      providers: [
        { provide: Env, inject: [ConfigService], useFactory: (config: ConfigService) => config.getOrThrow<Env>(KEY) },
        Clock,
        Random,
        Stopping,
      ],
      exports: [Env, Clock, Random, Stopping],
    };
  }
}
