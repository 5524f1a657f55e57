import { Global, Module } from '@nestjs/common';
import { Restores } from './restores.js';
import { SendingController } from './sending.controller.js';
import { Sending } from './sending.js';

/** The hold on calls to the platform. */
@Global()
@Module({ controllers: [SendingController], providers: [Sending, Restores], exports: [Sending, Restores] })
export class SendingModule {}
