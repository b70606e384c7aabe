# SPDX-FileCopyrightText: The Larch authors
# SPDX-License-Identifier: Apache-2.0
# A program prints its manual page and its completion into files of FOLDER, which are installed:
# cmake -D PROGRAM=FILE -D NAME=pbt-detect -D FOLDER=FOLDER -P printed_pages.cmake
file(MAKE_DIRECTORY ${FOLDER})
execute_process(COMMAND ${PROGRAM} --manual-page COMMAND gzip -9n OUTPUT_FILE ${FOLDER}/${NAME}.1.gz
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} --completion bash OUTPUT_FILE ${FOLDER}/${NAME} COMMAND_ERROR_IS_FATAL ANY)
