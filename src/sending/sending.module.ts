import { Global, Module } from '@nestjs/common';
import { SendingController } from './sending.controller.js';
import { Sending } from './sending.js';

/** The hold on calls to the platform. */
@Global()
@Module({ controllers: [SendingController], providers: [Sending], exports: [Sending] })
export class SendingModule {}
