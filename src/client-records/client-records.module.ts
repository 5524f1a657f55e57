import { Module } from '@nestjs/common';
import { ImportsModule } from '../imports/imports.module.js';
import { PeopleModule } from '../people/people.module.js';
import { SessionsModule } from '../sessions/sessions.module.js';
import { ClientExport } from './client-export.service.js';
import { ClientRecordsController } from './client-records.controller.js';
import { DisclosuresRepository } from './disclosures.repository.js';
import { LegalHolds } from './legal-hold.service.js';

/** The stored data of a client, and its disclosures. */
@Module({
  imports: [PeopleModule, SessionsModule, ImportsModule],
  controllers: [ClientRecordsController],
  providers: [ClientExport, DisclosuresRepository, LegalHolds],
})
export class ClientRecordsModule {}
