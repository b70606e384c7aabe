// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Detect on every image:   nextflow run main.nf --model organ.pbt --images 'images/*.nii.gz' --out out
// Exit codes: 5 (memory), 130 and 143 (stopped) are worth another try; 7 is "nothing found".
params.out = 'out'

process detect {
    publishDir params.out, mode: 'copy'
    errorStrategy { task.exitStatus in [5, 130, 143] ? 'retry' : task.exitStatus == 7 ? 'ignore' : 'finish' }
    maxRetries 2
    memory { 4.GB * task.attempt }
    cpus 2

    input:
    tuple path(model), path(image)

    output:
    path 'found_*'

    script:
    def name = image.name.replaceFirst(/\..*/, '')
    """
    pbt-detect --model ${model} --input ${image} --output found_${name}.nii.gz \
        --mesh found_${name}.vtk --threads ${task.cpus} --quiet
    """
}

workflow {
    Channel.fromPath(params.images) | map { image -> tuple(file(params.model), image) } | detect
}
