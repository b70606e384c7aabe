// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Detect on every case of a list:   nextflow run main.nf --model organ.pbt --list cases.tsv --out out
// cases.tsv has the columns id and image, as for pbt-detect --list; the outputs are named by the id.
// Exit codes: 5 (memory), 130 and 143 (stopped) are worth another try. A case in which nothing is found is
// no failure, and is published.
params.out = 'out'

process detect {
    publishDir params.out, mode: 'copy'
    tag "${id}"
    errorStrategy { task.exitStatus in [5, 130, 143] ? 'retry' : 'finish' }
    maxRetries 2
    memory { 4.GB * task.attempt }
    cpus 2

    input:
    tuple val(id), path(model, stageAs: 'model/*'), path(image, stageAs: 'image/*')

    output:
    path "${id}.*"

    script:
    """
    pbt-detect --model '${model}' --input '${image}' --output '${id}.nii.gz' \
        --mesh '${id}.vtk' --threads ${task.cpus} --reject-code 0 --quiet
    """
}

workflow {
    list = file(params.list)
    rows = list.splitCsv(header: true, sep: '\t')
    twice = rows.countBy { it.id }.findAll { id, times -> times > 1 || !id }
    if (twice) error "${params.list}: ids that are empty or stand twice: ${twice.keySet()}"
    Channel.fromList(rows)
        | map { row -> tuple(row.id, file(params.model), list.parent.resolve(row.image)) }
        | detect
}
