import { Module } from '@nestjs/common';
import { ImportsModule } from '../imports/imports.module.js';
import { PeopleModule } from '../people/people.module.js';
import { SessionsModule } from '../sessions/sessions.module.js';
import { ClientExport } from './client-export.js';
import { ClientRecordsController } from './client-records.controller.js';
import { Disclosures } from './disclosures.js';
import { DisclosuresRepository } from './disclosures.repository.js';

/** All that is held of one client, and to whom it was disclosed. */
@Module({
  imports: [PeopleModule, SessionsModule, ImportsModule],
  controllers: [ClientRecordsController],
  providers: [ClientExport, Disclosures, DisclosuresRepository],
})
export class ClientRecordsModule {}
