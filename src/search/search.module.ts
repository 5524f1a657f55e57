import { Module } from '@nestjs/common';
import { ComplianceModule } from '../compliance/compliance.module.js';
import { ImportsModule } from '../imports/imports.module.js';
import { PeopleModule } from '../people/people.module.js';
import { SessionsModule } from '../sessions/sessions.module.js';
import { SearchController } from './search.controller.js';
import { Search } from './search.service.js';

/** Search by an exact id or email. */
@Module({
  imports: [ComplianceModule, ImportsModule, PeopleModule, SessionsModule],
  controllers: [SearchController],
  providers: [Search],
})
export class SearchModule {}
