import { Module } from '@nestjs/common';
import { SessionsModule } from '../sessions/sessions.module.js';
import { FhirController } from './fhir.controller.js';
import { NoteReader } from './note-reader.js';

/** The FHIR interface. */
@Module({ imports: [SessionsModule], controllers: [FhirController], providers: [NoteReader] })
export class FhirModule {}
