import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsInt, IsOptional, IsString, Max, MaxLength, Min } from 'class-validator';

/** Bytes; no file of a recorder is larger. */
const LARGEST = 1024 ** 4;

/** `POST /v1/recordings/upload-url`: what the platform may want to know of the file beforehand. */
export class RecordingUploadDto {
  @ApiPropertyOptional({ type: String, example: 'audio/wav' })
  @IsOptional()
  @IsString()
  @MaxLength(100)
  contentType?: string;

  @ApiPropertyOptional({ type: Number, minimum: 1, description: 'Bytes' })
  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(LARGEST)
  size?: number;
}

/** Where a browser or the EHR sends a recording by itself. */
export class RecordingUploadAnswer {
  @ApiProperty({ type: String, description: 'Send the file here, with `method` and `headers`, without any key' })
  uploadUrl!: string;

  @ApiProperty({ type: String, description: 'Names the recording in POST /v1/sessions afterwards' })
  url!: string;

  @ApiProperty({ type: String, example: 'PUT' })
  method!: string;

  @ApiProperty({ type: 'object', additionalProperties: { type: 'string' } })
  headers!: Record<string, string>;
}

/** A recording that arrived at the platform's store. */
export class RecordingAnswer {
  @ApiProperty({ type: String, description: 'Names the recording in POST /v1/sessions' })
  url!: string;

  @ApiProperty({ type: Number })
  bytes!: number;
}
